//! Template data of Flux: the changes of an update.

use tagboat_go_template::{
    Field, Json, Map, MapType, Method, Slice, Struct, StructType, TEXT_MAP, Type, Value,
};

static NAMESPACED_NAME: StructType = StructType {
    name: "types.NamespacedName",
    fields: &[Field::new("Namespace", Type::String), Field::new("Name", Type::String)],
    methods: &[Method::new("String", |value, _| {
        Ok(format!("{}/{}", text(value, "Namespace"), text(value, "Name")).into())
    })],
};

const fn json(name: &'static str, json: &'static str) -> Field {
    Field { json: Json::OmitEmpty(json), ..Field::new(name, Type::String) }
}

const fn embedded(name: &'static str, kind: &'static StructType) -> Field {
    Field { embedded: true, json: Json::Inline, ..Field::new(name, Type::Struct(kind)) }
}

static TYPE_META: StructType = StructType {
    name: "yaml.TypeMeta",
    fields: &[json("APIVersion", "apiVersion"), json("Kind", "kind")],
    methods: &[],
};

static NAME_META: StructType = StructType {
    name: "yaml.NameMeta",
    fields: &[json("Name", "name"), json("Namespace", "namespace")],
    methods: &[],
};

static RESOURCE_IDENTIFIER: StructType = StructType {
    name: "yaml.ResourceIdentifier",
    fields: &[embedded("TypeMeta", &TYPE_META), embedded("NameMeta", &NAME_META)],
    methods: &[],
};

static OBJECT_IDENTIFIER: StructType = StructType {
    name: "update.ObjectIdentifier",
    fields: &[embedded("ResourceIdentifier", &RESOURCE_IDENTIFIER)],
    methods: &[],
};

static CHANGE: StructType = StructType {
    name: "update.Change",
    fields: &[
        Field::new("OldValue", Type::String),
        Field::new("NewValue", Type::String),
        Field::new("Setter", Type::String),
    ],
    methods: &[],
};

const OBJECT: Type = Type::Struct(&OBJECT_IDENTIFIER);
const A_CHANGE: Type = Type::Struct(&CHANGE);
const CHANGES: Type = Type::Slice(&A_CHANGE);
static OBJECT_CHANGES: MapType = MapType { name: Some("update.ObjectChanges"), key: OBJECT, value: CHANGES };
static FILE_CHANGES: MapType = MapType { name: None, key: Type::String, value: Type::Map(&OBJECT_CHANGES) };

static IMAGE: StructType = StructType {
    name: "update.imageRef",
    fields: &[
        Field::new("registry", Type::String),
        Field::new("repository", Type::String),
        Field::new("identifier", Type::String),
        Field::new("policy", Type::Struct(&NAMESPACED_NAME)),
    ],
    methods: &[
        Method::new("String", |value, _| {
            let registry = text(value, "registry");
            let registry = registry.trim_start_matches("index.docker.io");
            Ok(format!("{registry}/{}:{}", text(value, "repository"), text(value, "identifier")).into())
        }),
        Method::new("Identifier", |value, _| Ok(text(value, "identifier").into())),
        Method::new("Repository", |value, _| Ok(text(value, "repository").into())),
        Method::new("Registry", |value, _| Ok(text(value, "registry").into())),
        Method::new("Name", |value, _| {
            let (registry, repository) = (text(value, "registry"), text(value, "repository"));
            Ok(format!("{registry}/{repository}:{}", text(value, "identifier")).into())
        }),
        Method::new("Policy", |value, _| Ok(field(value, "policy"))),
    ],
};

const IMAGE_REF: Type = Type::Interface("update.ImageRef");
const IMAGES: Type = Type::Slice(&IMAGE_REF);
static OBJECT_IMAGES: MapType = MapType { name: None, key: OBJECT, value: IMAGES };

static FILE_RESULT: StructType = StructType {
    name: "update.FileResult",
    fields: &[Field::new("Objects", Type::Map(&OBJECT_IMAGES))],
    methods: &[],
};

static FILES: MapType = MapType { name: None, key: Type::String, value: Type::Struct(&FILE_RESULT) };

static RESULT: StructType = StructType {
    name: "update.Result",
    fields: &[Field::new("Files", Type::Map(&FILES))],
    methods: &[
        Method::new("Images", |value, _| {
            let images = entries(&field(value, "Files")).into_iter();
            let images = images.flat_map(|(_, file)| entries(&field(&file, "Objects")));
            Ok(Slice::new(&IMAGE_REF, images.flat_map(|(_, images)| items(&images)).collect()).into())
        }),
        Method::new("Objects", |value, _| {
            let objects = entries(&field(value, "Files")).into_iter();
            Ok(Map::new(&OBJECT_IMAGES, objects.flat_map(|(_, file)| entries(&field(&file, "Objects"))))
                .into())
        }),
    ],
};

static RESULT_V2: StructType = StructType {
    name: "update.ResultV2",
    fields: &[
        Field::new("ImageResult", Type::Struct(&RESULT)),
        Field::new("FileChanges", Type::Map(&FILE_CHANGES)),
    ],
    methods: &[
        Method::new("Changes", |value, _| {
            let mut changes: Vec<Value> = Vec::new();
            let files = entries(&field(value, "FileChanges"));
            for change in files.iter().flat_map(|(_, file)| entries(file)).flat_map(|(_, all)| items(&all)) {
                let same = |other: &Value| {
                    ["OldValue", "NewValue", "Setter"]
                        .iter()
                        .all(|name| text(other, name) == text(&change, name))
                };
                if !changes.iter().any(same) {
                    changes.push(change);
                }
            }
            Ok(Slice::new(&A_CHANGE, changes).into())
        }),
        Method::new("Objects", |value, _| {
            let files = entries(&field(value, "FileChanges")).into_iter();
            Ok(Map::new(&OBJECT_CHANGES, files.flat_map(|(_, file)| entries(&file))).into())
        }),
    ],
};

pub(super) const DATA: Type = Type::Struct(&TEMPLATE_DATA);

static TEMPLATE_DATA: StructType = StructType {
    name: "source.TemplateData",
    fields: &[
        Field::new("AutomationObject", Type::Struct(&NAMESPACED_NAME)),
        Field::new("Updated", Type::Struct(&RESULT)),
        Field::new("Changed", Type::Struct(&RESULT_V2)),
        Field::new("Values", Type::Map(&TEXT_MAP)),
    ],
    methods: &[],
};

fn field(value: &Value, name: &str) -> Value {
    let Value::Struct(object) = value else { return Value::Nil };
    object.field(name).expect("the sample has the field")
}

fn text(value: &Value, name: &str) -> String {
    let Value::String(text) = field(value, name) else { panic!("{name} is no text") };
    text.to_string()
}

fn entries(value: &Value) -> Vec<(Value, Value)> {
    if let Value::Map(map) = value { map.entries() } else { panic!("{value:?} is no map") }
}

fn items(value: &Value) -> Vec<Value> {
    if let Value::Slice(slice) = value { slice.to_vec() } else { panic!("{value:?} is no slice") }
}

fn named(namespace: &str, name: &str) -> Value {
    Struct::new(&NAMESPACED_NAME, vec![namespace.into(), name.into()]).into()
}

fn object(version: &str, kind: &str, namespace: &str, name: &str) -> Value {
    let kind = Struct::new(&TYPE_META, vec![version.into(), kind.into()]);
    let name = Struct::new(&NAME_META, vec![name.into(), namespace.into()]);
    let resource = Struct::new(&RESOURCE_IDENTIFIER, vec![kind.into(), name.into()]);
    Struct::new(&OBJECT_IDENTIFIER, vec![resource.into()]).into()
}

fn changes(all: &[[&str; 3]]) -> Value {
    let change =
        |texts: &[&str; 3]| Struct::new(&CHANGE, texts.iter().map(|text| (*text).into()).collect()).into();
    Slice::new(&A_CHANGE, all.iter().map(change).collect()).into()
}

fn image(texts: [&str; 3], policy: &str) -> Value {
    let mut fields: Vec<Value> = texts.iter().map(|text| (*text).into()).collect();
    fields.push(named("flux-system", policy));
    Slice::new(&IMAGE_REF, vec![Struct::new(&IMAGE, fields).into()]).into()
}

/// Returns an update of three objects in two files.
pub(super) fn sample() -> Value {
    let web = object("apps/v1", "Deployment", "prod", "web");
    let api = object("apps/v1", "Deployment", "prod", "api");
    let job = object("batch/v1", "CronJob", "", "job");
    let podinfo = image(["ghcr.io", "stefanprodan/podinfo", "6.7.0"], "podinfo");
    let busybox = image(["index.docker.io", "library/busybox", "1.36"], "busybox");
    let images = |object: &Value, images: Value| {
        let objects = Map::new(&OBJECT_IMAGES, [(object.clone(), images)]);
        Value::from(Struct::new(&FILE_RESULT, vec![objects.into()]))
    };
    let files = Map::new(
        &FILES,
        [("apps/web.yaml".into(), images(&web, podinfo)), ("apps/api.yaml".into(), images(&job, busybox))],
    );
    let updated = Struct::new(&RESULT, vec![files.into()]);
    let tag = ["6.6.0", "6.7.0", "flux-system:podinfo:tag"];
    let web_changes = changes(&[
        ["ghcr.io/stefanprodan/podinfo:6.6.0", "ghcr.io/stefanprodan/podinfo:6.7.0", "flux-system:podinfo"],
        tag,
    ]);
    let job_changes = changes(&[["busybox:1.35", "busybox:1.36", "flux-system:busybox"]]);
    let file_changes = Map::new(
        &FILE_CHANGES,
        [
            ("apps/web.yaml".into(), Map::new(&OBJECT_CHANGES, [(web, web_changes)]).into()),
            (
                "apps/api.yaml".into(),
                Map::new(&OBJECT_CHANGES, [(api, changes(&[tag])), (job, job_changes)]).into(),
            ),
        ],
    );
    let changed = Struct::new(&RESULT_V2, vec![Type::Struct(&RESULT).zero(), file_changes.into()]);
    let values = [
        ("cluster", "prod"),
        ("ticket", "OPS-7"),
        ("empty", ""),
        ("odd.key", "odd"),
        ("html", "<b>\"x\" & 'y'</b>"),
    ];
    let values = Map::new(&TEXT_MAP, values.map(|(key, value)| (key.into(), value.into())));
    let fields = vec![named("flux-system", "apps"), updated.into(), changed.into(), values.into()];
    Struct::new(&TEMPLATE_DATA, fields).into()
}
