//! Functions on slash-separated paths, as in Go's package `path`.

use crate::functions::Function;
use crate::text::find_last;
use crate::value::Type;

const TEXT: Type = Type::String;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("base", &[TEXT], |a, _| Ok(base(a.bytes(0)).to_vec().into())),
    Function::new("dir", &[TEXT], |a, _| Ok(dir(a.bytes(0)).into())),
    Function::new("clean", &[TEXT], |a, _| Ok(clean(a.bytes(0)).into())),
    Function::new("ext", &[TEXT], |a, _| Ok(ext(a.bytes(0)).to_vec().into())),
    Function::new("isAbs", &[TEXT], |a, _| Ok(a.bytes(0).starts_with(b"/").into())),
    Function::new("osBase", &[TEXT], |a, _| Ok(base(a.bytes(0)).to_vec().into())),
    Function::new("osDir", &[TEXT], |a, _| Ok(dir(a.bytes(0)).into())),
    Function::new("osClean", &[TEXT], |a, _| Ok(clean(a.bytes(0)).into())),
    Function::new("osExt", &[TEXT], |a, _| Ok(ext(a.bytes(0)).to_vec().into())),
    Function::new("osIsAbs", &[TEXT], |a, _| Ok(a.bytes(0).starts_with(b"/").into())),
];

fn base(path: &[u8]) -> &[u8] {
    if path.is_empty() {
        return b".";
    }
    let end = path.iter().rposition(|&byte| byte != b'/').map_or(0, |at| at + 1);
    let path = &path[..end];
    let name = &path[find_last(path, b"/").map_or(0, |at| at + 1)..];
    if name.is_empty() { b"/" } else { name }
}

fn dir(path: &[u8]) -> Vec<u8> {
    clean(&path[..find_last(path, b"/").map_or(0, |at| at + 1)])
}

fn ext(path: &[u8]) -> &[u8] {
    let name = &path[find_last(path, b"/").map_or(0, |at| at + 1)..];
    find_last(name, b".").map_or(&[], |at| &name[at..])
}

/// Returns the shortest equivalent path.
fn clean(path: &[u8]) -> Vec<u8> {
    let is_rooted = path.starts_with(b"/");
    let mut kept: Vec<&[u8]> = Vec::new();
    for part in path.split(|&byte| byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if kept.last().is_some_and(|last| *last != b"..") => {
                kept.pop();
            }
            b".." if is_rooted => {}
            part => kept.push(part),
        }
    }
    let joined = kept.join(b"/".as_slice());
    match (is_rooted, joined.is_empty()) {
        (true, _) => [b"/", joined.as_slice()].concat(),
        (false, true) => b".".to_vec(),
        (false, false) => joined,
    }
}
