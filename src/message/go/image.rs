//! Template values of images: `update.ImageRef` with a reference like that of go-containerregistry.

use tagboat_go_template::{Field, Json, Method, Struct, StructType, Type, Value};

use super::fields::{embedded, field, text};
use super::name::{NAMESPACED_NAME, namespaced_name};
use crate::message::image::PolicyImage;

/// The registry of names without a registry: Docker Hub.
const DOCKER_HUB: &str = "index.docker.io";

/// The type of fields that hold images; it hides the images' own type.
pub(super) const IMAGE_REF: Type = Type::Interface("update.ImageRef");

static IMAGE: StructType = StructType {
    name: "update.imageRef",
    fields: &[
        Field::new("Reference", Type::Interface("name.Reference")),
        Field::new("policy", Type::Struct(&NAMESPACED_NAME)),
    ],
    methods: &[
        Method::new("String", |value, _| Ok(of_reference(value, "original"))),
        Method::new("Identifier", |value, _| identifier(&field(value, "Reference"), &[])),
        Method::new("Repository", |value, _| repository_text(&field(value, "Reference"), &[])),
        Method::new("Registry", |value, _| Ok(of_reference(value, "registry"))),
        Method::new("Name", |value, _| name(&field(value, "Reference"), &[])),
        Method::new("Policy", |value, _| Ok(field(value, "policy"))),
        Method::new("Context", |value, _| context(&field(value, "Reference"), &[])),
        Method {
            parameters: &[Type::String],
            ..Method::new("Scope", |value, given| scope(&field(value, "Reference"), given))
        },
    ],
};

/// An image with the parts that `update.ImageRef` does not show.
pub(super) static TAGGED_IMAGE: StructType = StructType {
    name: "tagboat.Image",
    fields: &[
        embedded("ImageRef", &IMAGE, Json::Plain),
        Field::new("Tag", Type::String),
        Field::new("Digest", Type::String),
    ],
    methods: &[],
};

static TAG: StructType = StructType {
    name: "name.Tag",
    fields: &[
        embedded("Repository", &REPOSITORY, Json::Plain),
        Field::new("tag", Type::String),
        Field::new("original", Type::String),
    ],
    methods: &[
        Method::new("String", original),
        Method::new("Identifier", identifier),
        Method::new("TagStr", identifier),
        Method::new("Name", name),
        Method::new("Context", context),
        Method { parameters: &[Type::String], ..Method::new("Scope", scope) },
    ],
};

static DIGEST: StructType = StructType {
    name: "name.Digest",
    fields: &[
        embedded("Repository", &REPOSITORY, Json::Plain),
        Field::new("digest", Type::String),
        Field::new("original", Type::String),
    ],
    methods: &[
        Method::new("String", original),
        Method::new("Identifier", identifier),
        Method::new("DigestStr", identifier),
        Method::new("Name", name),
        Method::new("Context", context),
        Method { parameters: &[Type::String], ..Method::new("Scope", scope) },
    ],
};

static REPOSITORY: StructType = StructType {
    name: "name.Repository",
    fields: &[embedded("Registry", &REGISTRY, Json::Plain), Field::new("repository", Type::String)],
    methods: &[
        Method::new("String", repository_name),
        Method::new("Name", repository_name),
        Method::new("RepositoryStr", repository_text),
        Method { parameters: &[Type::String], ..Method::new("Scope", scope) },
    ],
};

static REGISTRY: StructType = StructType {
    name: "name.Registry",
    fields: &[Field::new("insecure", Type::Bool), Field::new("registry", Type::String)],
    methods: &[
        Method::new("String", |value, _| Ok(field(value, "registry"))),
        Method::new("Name", |value, _| Ok(field(value, "registry"))),
        Method::new("RegistryStr", |value, _| Ok(field(value, "registry"))),
    ],
};

/// The template value of a policy's image.
pub(super) fn image_ref(image: &PolicyImage) -> Value {
    let PolicyImage { policy, image } = image;
    let (_, path) = image.name.parts();
    let registry = Struct::new(&REGISTRY, vec![false.into(), image.name.registry().into()]);
    let repository = Struct::new(&REPOSITORY, vec![registry.into(), path.into()]);
    let original = image.to_string();
    let reference = match &image.digest {
        Some(digest) => {
            Struct::new(&DIGEST, vec![repository.into(), digest.as_str().into(), original.into()])
        }
        None => Struct::new(&TAG, vec![repository.into(), image.tag.as_str().into(), original.into()]),
    };
    let policy = namespaced_name(&policy.namespace, &policy.name);
    Struct::new(&IMAGE, vec![reference.into(), policy]).into()
}

/// The template value of a policy's image with its tag and its digest.
pub(super) fn tagged_image(image: &PolicyImage) -> Value {
    let digest = image.image.digest.as_ref().map_or("", |digest| digest.as_str());
    let parts = vec![image_ref(image), image.image.tag.as_str().into(), digest.into()];
    Struct::new(&TAGGED_IMAGE, parts).into()
}

fn of_reference(value: &Value, name: &str) -> Value {
    field(&field(value, "Reference"), name)
}

fn original(value: &Value, _: &[Value]) -> Result<Value, String> {
    Ok(field(value, "original"))
}

fn context(value: &Value, _: &[Value]) -> Result<Value, String> {
    Ok(field(value, "Repository"))
}

/// The digest, or the tag without a digest.
fn identifier(value: &Value, _: &[Value]) -> Result<Value, String> {
    Ok(match field(value, "digest") {
        Value::Nil => field(value, "tag"),
        digest => digest,
    })
}

/// The name without registry; a single component on Docker Hub is in `library/`.
fn repository_text(value: &Value, _: &[Value]) -> Result<Value, String> {
    let (registry, repository) = (text(value, "registry"), text(value, "repository"));
    let is_official = registry.as_bytes() == DOCKER_HUB.as_bytes() && !repository.as_bytes().contains(&b'/');
    Ok(if is_official { format!("library/{repository}").into() } else { repository.into() })
}

fn repository_name(value: &Value, _: &[Value]) -> Result<Value, String> {
    let repository = repository_text(value, &[])?;
    Ok(format!("{}/{}", text(value, "registry"), shown(&repository)).into())
}

/// Registry and repository with the digest, or with the tag without a digest.
fn name(value: &Value, _: &[Value]) -> Result<Value, String> {
    let repository = repository_name(value, &[])?;
    let mark = if matches!(field(value, "digest"), Value::Nil) { ':' } else { '@' };
    Ok(format!("{}{mark}{}", shown(&repository), shown(&identifier(value, &[])?)).into())
}

fn scope(value: &Value, given: &[Value]) -> Result<Value, String> {
    let repository = repository_text(value, &[])?;
    let action = given.first().map(shown).unwrap_or_default();
    Ok(format!("repository:{}:{action}", shown(&repository)).into())
}

fn shown(value: &Value) -> String {
    if let Value::String(text) = value { text.to_string() } else { String::new() }
}
