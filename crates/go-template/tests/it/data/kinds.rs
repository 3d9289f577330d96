//! Template data with a value of every kind.

use tagboat_go_template::{
    ANY, Callable, DICT, Field, INT, IntKind, Json, LIST, Map, MapType, Method, NamedInt, Pointer, Slice,
    Struct, StructType, Type, UintKind, Value,
};

static POINT: StructType =
    StructType { name: "sample.Point", fields: &[Field::new("X", INT), Field::new("Y", INT)], methods: &[] };
const A_POINT: Type = Type::Struct(&POINT);

static NAMED: StructType = StructType {
    name: "sample.Named",
    fields: &[
        Field::new("Name", Type::String),
        Field { json: Json::OmitEmpty("size"), ..Field::new("Size", INT) },
    ],
    methods: &[Method::new("String", |value, _| Ok(format!("<{}>", text(value, "Name")).into()))],
};
const A_NAMED: Type = Type::Struct(&NAMED);

static INNER: StructType = StructType {
    name: "sample.Inner",
    fields: &[
        Field { json: Json::Skip, ..Field::new("Deep", Type::String) },
        Field { json: Json::Name("label"), ..Field::new("Label", Type::String) },
        Field::new("Shared", Type::String),
    ],
    methods: &[Method::new("Shout", |value, _| Ok(text(value, "Label").to_uppercase().into()))],
};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

static MONTH: NamedInt = NamedInt {
    name: "time.Month",
    kind: IntKind::Int,
    text: |month| {
        let name = usize::try_from(month - 1).ok().and_then(|at| MONTHS.get(at));
        name.map_or_else(|| format!("%!Month({month})"), |name| (*name).to_owned())
    },
};

static COUNTS: MapType = MapType { name: None, key: Type::String, value: INT };
static BY_INT: MapType = MapType { name: None, key: INT, value: Type::String };
static BY_BOOL: MapType = MapType { name: None, key: Type::Bool, value: Type::String };
static BY_POINT: MapType = MapType { name: None, key: A_POINT, value: Type::String };
static BY_FLOAT: MapType = MapType { name: None, key: Type::Float, value: Type::String };

const BYTE: Type = Type::Uint(UintKind::Uint8);
const ADD: &str = "func(int, int) int";

static DATA: StructType = StructType {
    name: "sample.Data",
    fields: &[
        Field { embedded: true, ..Field::new("Inner", Type::Struct(&INNER)) },
        Field::new("Shared", Type::String),
        Field::new("Yes", Type::Bool),
        Field::new("No", Type::Bool),
        Field::new("Int", INT),
        Field::new("Minus", INT),
        Field::new("Int8", Type::Int(IntKind::Int8)),
        Field::new("Int32", Type::Int(IntKind::Int32)),
        Field::new("Int64", Type::Int(IntKind::Int64)),
        Field::new("Uint", Type::Uint(UintKind::Uint)),
        Field::new("Uint8", Type::Uint(UintKind::Uint8)),
        Field::new("Uint64", Type::Uint(UintKind::Uint64)),
        Field::new("Float", Type::Float),
        Field::new("Complex", Type::Complex),
        Field::new("Text", Type::String),
        Field::new("Accents", Type::String),
        Field::new("Bytes", Type::String),
        Field::new("Blob", Type::Slice(&BYTE)),
        Field::new("Texts", Type::Slice(&Type::String)),
        Field::new("Ints", Type::Slice(&INT)),
        Field::new("Points", Type::Slice(&A_POINT)),
        Field::new("Anys", LIST),
        Field::new("Counts", Type::Map(&COUNTS)),
        Field::new("Any", DICT),
        Field::new("ByInt", Type::Map(&BY_INT)),
        Field::new("ByBool", Type::Map(&BY_BOOL)),
        Field::new("ByPoint", Type::Map(&BY_POINT)),
        Field::new("ByFloat", Type::Map(&BY_FLOAT)),
        Field::new("NoMap", DICT),
        Field::new("NoInts", Type::Slice(&INT)),
        Field::new("NoPoint", Type::Pointer(&A_POINT)),
        Field::new("Point", A_POINT),
        Field::new("ToPoint", Type::Pointer(&A_POINT)),
        Field::new("Named", A_NAMED),
        Field::new("ToNamed", Type::Pointer(&A_NAMED)),
        Field::new("Nothing", ANY),
        Field::new("Number", ANY),
        Field::new("Holder", ANY),
        Field::new("Month", Type::Int(IntKind::Named(&MONTH))),
        Field::new("Add", Type::Function(ADD)),
        Field::new("hidden", Type::String),
    ],
    methods: &[
        Method {
            parameters: &[Type::String],
            ..Method::new("Greet", |_, arguments| match arguments {
                [Value::String(name)] => Ok(format!("hello {name}").into()),
                _ => Err("no name".to_owned()),
            })
        },
        Method {
            parameters: &[INT, INT],
            ..Method::new("Sum", |_, arguments| Ok(Value::int(arguments.iter().map(number).sum())))
        },
        Method::new("Broken", |_, _| Err("it is broken".to_owned())),
        Method::new("Self", |value, _| Ok(value.clone())),
    ],
};

fn text(value: &Value, name: &str) -> String {
    let Value::Struct(object) = value else { panic!("{value:?} is no struct") };
    let Some(Value::String(text)) = object.field(name) else { panic!("{name} is no text") };
    text.to_string()
}

fn number(value: &Value) -> i64 {
    if let Value::Int(number, _) = value { *number } else { panic!("{value:?} is no int") }
}

fn point(x: i64, y: i64) -> Value {
    Struct::new(&POINT, vec![Value::int(x), Value::int(y)]).into()
}

fn named(name: &str, size: i64) -> Value {
    Struct::new(&NAMED, vec![name.into(), Value::int(size)]).into()
}

fn map<const N: usize>(kind: &'static MapType, entries: [(Value, Value); N]) -> Value {
    Map::new(kind, entries).into()
}

fn slice<const N: usize>(of: &'static Type, items: [Value; N]) -> Value {
    Slice::new(of, items.into()).into()
}

/// Returns the value of each field.
fn fields() -> Vec<(&'static str, Value)> {
    let list = Value::list(vec![Value::int(1), "x".into()]);
    let dict = Value::from(Map::dict([("k".into(), "v".into())]));
    let any = Map::dict([
        ("name".into(), "any".into()),
        ("none".into(), Value::Nil),
        ("list".into(), list),
        ("dict".into(), dict),
        ("zero".into(), Value::int(0)),
    ]);
    let anys = vec![
        Value::int(1),
        "two".into(),
        3.5.into(),
        Value::Nil,
        true.into(),
        Value::list(vec!["in".into()]),
    ];
    let add = Callable::new(ADD, &[INT, INT], |arguments| Ok(Value::int(arguments.iter().map(number).sum())));
    vec![
        ("Inner", Struct::new(&INNER, vec!["deep".into(), "label".into(), "inner".into()]).into()),
        ("Shared", "outer".into()),
        ("Yes", true.into()),
        ("Int", Value::int(42)),
        ("Minus", Value::int(-7)),
        ("Int8", Value::Int(-8, IntKind::Int8)),
        ("Int32", Value::Int(65, IntKind::Int32)),
        ("Int64", Value::int64(1 << 40)),
        ("Uint", Value::Uint(7, UintKind::Uint)),
        ("Uint8", Value::Uint(200, UintKind::Uint8)),
        ("Uint64", Value::Uint(u64::MAX, UintKind::Uint64)),
        ("Float", 3.25.into()),
        ("Complex", Value::Complex(1.0, 2.0)),
        ("Text", "hello world".into()),
        ("Accents", "äöü €😀".into()),
        ("Bytes", b"a\xffb\x00c".to_vec().into()),
        ("Blob", slice(&BYTE, b"blob".map(|byte| Value::Uint(byte.into(), UintKind::Uint8)))),
        ("Texts", slice(&Type::String, ["one", "two", "three"].map(Value::from))),
        ("Ints", slice(&INT, [3, 1, 2].map(Value::int))),
        ("Points", slice(&A_POINT, [point(1, 2), point(3, 4)])),
        ("Anys", Value::list(anys)),
        ("Counts", map(&COUNTS, [("b", 2), ("a", 1), ("c", 0)].map(|(key, n)| (key.into(), Value::int(n))))),
        ("Any", any.into()),
        (
            "ByInt",
            map(&BY_INT, [(10, "ten"), (9, "nine"), (-1, "minus")].map(|(n, t)| (Value::int(n), t.into()))),
        ),
        ("ByBool", map(&BY_BOOL, [(true.into(), "t".into()), (false.into(), "f".into())])),
        (
            "ByPoint",
            map(
                &BY_POINT,
                [(2, 1, "21"), (1, 9, "19"), (1, 2, "12")].map(|(x, y, t)| (point(x, y), t.into())),
            ),
        ),
        ("ByFloat", map(&BY_FLOAT, [(1.5.into(), "x".into()), ((-2.0).into(), "y".into())])),
        ("Point", point(5, 6)),
        ("ToPoint", Value::Pointer(Pointer::new(&A_POINT, point(7, 8)))),
        ("Named", named("ann", 3)),
        ("ToNamed", Value::Pointer(Pointer::new(&A_NAMED, named("bob", 0)))),
        ("Number", Value::int(5)),
        ("Holder", named("held", 1)),
        ("Month", Value::Int(3, IntKind::Named(&MONTH))),
        ("Add", Value::Function(add)),
        ("hidden", "hidden".into()),
    ]
}

/// Returns a struct with a field of each kind.
pub(super) fn sample() -> Value {
    let given = fields();
    let value = |field: &Field| {
        let found = given.iter().find(|(name, _)| *name == field.name);
        found.map_or_else(|| field.of.zero(), |(_, value)| value.clone())
    };
    Struct::new(&DATA, DATA.fields.iter().map(value).collect()).into()
}
