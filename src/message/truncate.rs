//! Limits the length of a committed message.

/// The maximum length in bytes.
///
/// Commits are read up to 1 MiB, with header and signature.
const MAX_LENGTH: usize = 900 << 10;

/// Shortens a message so that it fits into a commit.
///
/// Its last line states the omission.
pub fn truncated(message: Vec<u8>) -> Vec<u8> {
    if message.len() <= MAX_LENGTH {
        return message;
    }
    let mut kept = message;
    let length = kept.len();
    kept.truncate(MAX_LENGTH);
    // Only whole lines are kept, if there is more than one.
    if let Some(end) = kept.iter().rposition(|&byte| byte == b'\n') {
        kept.truncate(end + 1);
    } else {
        kept.push(b'\n');
    }
    let left_out = length.saturating_sub(kept.len());
    kept.extend_from_slice(format!("[{left_out} bytes of the message are left out]\n").as_bytes());
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A commit with too long a message could not be read by the next run.
    #[test]
    fn a_long_message_ends_with_a_note_about_its_omitted_part() {
        let short = b"x\n".repeat(MAX_LENGTH / 2);
        assert_eq!(truncated(short.clone()), short);
        let line = b"- one line of the message\n".as_slice();
        let cut = truncated(line.repeat(100_000));
        let text = String::from_utf8(cut).unwrap();
        let (last, before) =
            text.lines().rev().collect::<Vec<_>>().split_first().map(|(l, b)| (*l, b.len())).unwrap();
        let left_out = line.len() * (100_000 - before);
        assert_eq!(last, format!("[{left_out} bytes of the message are left out]"));
        assert!(text.len() < MAX_LENGTH + 100 && before > 30_000);
        let cut = truncated(vec![b'a'; 2 * MAX_LENGTH]);
        assert!(cut.ends_with(b"are left out]\n") && cut.len() < MAX_LENGTH + 100);
    }
}
