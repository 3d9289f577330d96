//! Limits the length of a committed message.

/// The maximum length in bytes: commits are read up to 1 MiB, with header and signature.
const LONGEST: usize = 900 << 10;

/// Shortens a message so that it fits into a commit; its last line states the omission.
pub fn shortened(message: Vec<u8>) -> Vec<u8> {
    if message.len() <= LONGEST {
        return message;
    }
    let mut kept = message;
    let whole = kept.len();
    kept.truncate(LONGEST);
    // Only whole lines are kept, if there is more than one.
    if let Some(end) = kept.iter().rposition(|&byte| byte == b'\n') {
        kept.truncate(end + 1);
    } else {
        kept.push(b'\n');
    }
    let left_out = whole.saturating_sub(kept.len());
    kept.extend_from_slice(format!("[{left_out} bytes of the message are left out]\n").as_bytes());
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A commit with too long a message could not be read by the next run.
    #[test]
    fn a_long_message_ends_with_what_is_left_out() {
        let short = b"x\n".repeat(LONGEST / 2);
        assert_eq!(shortened(short.clone()), short);
        let line = b"- one line of the message\n".as_slice();
        let cut = shortened(line.repeat(100_000));
        let text = String::from_utf8(cut).unwrap();
        let (last, before) =
            text.lines().rev().collect::<Vec<_>>().split_first().map(|(l, b)| (*l, b.len())).unwrap();
        let left_out = line.len() * (100_000 - before);
        assert_eq!(last, format!("[{left_out} bytes of the message are left out]"));
        assert!(text.len() < LONGEST + 100 && before > 30_000);
        let cut = shortened(vec![b'a'; 2 * LONGEST]);
        assert!(cut.ends_with(b"are left out]\n") && cut.len() < LONGEST + 100);
    }
}
