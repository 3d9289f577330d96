//! Limits the nesting of a template before it is parsed.
//!
//! The crate's parser and renderer recurse into nested parts.

/// The maximum nesting depth of blocks and subexpressions.
const MAX_DEPTH: usize = 100;

/// Rejects a template that is nested too deeply.
///
/// Each `else` counts as a block, as in the renderer.
pub(super) fn check(text: &str) -> Result<(), String> {
    let too_deep = || format!("blocks or expressions are nested deeper than {MAX_DEPTH} levels");
    let mut blocks: Vec<usize> = Vec::new();
    for tag in text.split("{{").skip(1) {
        let tag = tag.split("}}").next().unwrap_or(tag);
        if brackets(tag) > MAX_DEPTH {
            return Err(too_deep());
        }
        let tag = tag.trim_start_matches(['{', '~', ' ', '\t', '\r', '\n']);
        match tag.as_bytes().first() {
            Some(b'#') => blocks.push(1),
            Some(b'/') => {
                blocks.pop();
            }
            Some(b'^') => begin_else(&mut blocks),
            _ if tag.starts_with("else") => begin_else(&mut blocks),
            _ => {}
        }
        if blocks.iter().sum::<usize>() > MAX_DEPTH {
            return Err(too_deep());
        }
    }
    Ok(())
}

/// Counts an `else` or `{{^` as part of the outer block.
///
/// `{{^` may also begin an inverse block; the depth is the same then.
fn begin_else(blocks: &mut Vec<usize>) {
    match blocks.last_mut() {
        Some(block) => *block += 1,
        None => blocks.push(1),
    }
}

/// The nesting depth of subexpressions, lists and objects.
fn brackets(tag: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in tag.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_templates_beyond_the_nesting_limit_are_refused() {
        let blocks = |count: usize| "{{#if x}}".repeat(count) + &"{{/if}}".repeat(count);
        for (text, is_allowed) in [
            (blocks(MAX_DEPTH), true),
            (blocks(MAX_DEPTH + 1), false),
            (blocks(60).repeat(100), true),
            (format!("{{{{#if a}}}}{}{{{{/if}}}}", "{{else if b}}".repeat(MAX_DEPTH)), false),
            (format!("{{{{#if a}}}}{}{{{{/if}}}}", "{{~^if b}}".repeat(MAX_DEPTH)), false),
            ("{{#if a}}{{else}}{{/if}}".repeat(1000), true),
            (format!("{{{{len {}x{}}}}}", "(y ".repeat(101), ")".repeat(101)), false),
            (format!("{{{{len {}x{}}}}}", "(y ".repeat(100), ")".repeat(100)), true),
            (format!("{{{{len {}1{}}}}}", "[".repeat(101), "]".repeat(101)), false),
            (format!("{{{{len {}1 {}}}}}", "{\"a\":".repeat(101), "}".repeat(101)), false),
            ("{{Values.[odd.key]}}".repeat(200), true),
            (":-(".repeat(1000), true),
            ("{{#if x}} :-( ".repeat(50), true),
        ] {
            assert_eq!(check(&text).is_ok(), is_allowed, "{text:.60}");
        }
    }
}
