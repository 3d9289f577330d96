//! The building blocks of generated lines.

/// Comments, most of them markers.
pub(super) const COMMENTS: [&str; 24] = [
    r#"# {"$imagepolicy": "a:b"}"#,
    r#"# {"$imagepolicy": "a:b:tag"}"#,
    r#"# {"$imagepolicy": "a:b:name"}"#,
    r#"# {"$imagepolicy": "a:b:digest"}"#,
    r#"# {"$imagepolicy": "a:b:tag@digest"}"#,
    r#"# {"$imagepolicy": "c:d"}"#,
    r#"# {"$imagepolicy": "c:d:tag"}"#,
    r#"# {"$imagepolicy": "c:d:digest"}"#,
    r#"#{"$imagepolicy":"a:b:tag"}"#,
    r#"### {"$imagepolicy": "a:b"}  "#,
    r#"# {"$imagepolicy" : "c:d:name" , "note": "é"}"#,
    r##"# {"$ref": "#/definitions/io.k8s.cli.setters.a:b:tag"}"##,
    r#"# {"$imagepolicy": "a:b"}"#,
    r#"# {"$imagepolicy": "a:b:tag"}"#,
    r#"# {"$imagepolicy": "a:b:digest"}"#,
    r#"# {"$imagepolicy": "a:b:tag"} "#,
    r#"# {"$imagepolicy": "a:none"}"#,
    r#"# {"$imagepolicy": "a:out:tag"}"#,
    r#"# {"$imagepolicy": "x:y"}"#,
    r#"# {"$imagepolicy": "a:b:version"}"#,
    r#"# see {"$imagepolicy": "a:b"}"#,
    "# note",
    "#",
    "# 'é\t|",
];

/// Text in front of a key.
pub(super) const BEFORE_KEYS: [&str; 16] =
    ["", "", "", "", "", "", "", "", "", "", "", "", "? ", "&k ", "!!str ", "? - "];

/// Keys, the colon not included.
pub(super) const KEYS: [&str; 10] =
    ["image", "tag", "kind", "metadata", "name", "apiVersion", "\"a: b\"", "'k'", "a#b", "é"];

/// Keys in a flow mapping, most with their colon.
pub(super) const FLOW_KEYS: [&str; 8] = ["a: ", "b:", "\"c\":", "'d' : ", "? e : ", "f", "&k g: ", "\"h\""];

/// Anchors and tags in front of a node.
pub(super) const PROPERTIES: [&str; 20] = [
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "&a ",
    "&a ",
    "!!str ",
    "!!int ",
    "!!float ",
    "!!null ",
    "!own ",
    "! ",
    "&a !!str ",
    "!!int &a ",
    "!<tag:yaml.org,2002:str> ",
    "!!binary ",
];

/// Plain scalars.
pub(super) const PLAIN: [&str; 20] = [
    "podinfo:1.0",
    "1.0",
    "v1",
    "5000",
    "a b",
    "~",
    "null",
    "http://x:80/y",
    "a#b",
    "-x",
    "é",
    "a,b",
    "?x",
    "ghcr.io/stefanprodan/podinfo:6.4.0",
    "1:2",
    "on",
    "...x",
    "\u{10348}",
    "a'b",
    "\\",
];

/// Quoted scalars and short plain ones, for flow collections as well.
pub(super) const QUOTED: [&str; 14] = [
    "'v'",
    "\"v\"",
    "''",
    "\"\"",
    "'it''s'",
    "'a # b'",
    "\"a\\\"b\"",
    "\"\\n\\u00e9\"",
    "\"# {}\"",
    "v",
    "1.0",
    "'é'",
    "\"a: b\"",
    "'1.10'",
];

/// Lines of a block scalar.
pub(super) const BLOCK_LINES: [&str; 10] =
    ["", "v", "  v", "podinfo:1.0", "# c", "\tv", "é", "v  ", "- v", " "];
