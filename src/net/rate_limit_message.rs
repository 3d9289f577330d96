//! Messages of servers about rate limits.

/// Words by which servers say that they limit the rate of requests, in lower case.
///
/// GitHub has a limit per hour, and secondary ones, which it called abuse detection.
const LIMITED: [&str; 2] = ["rate limit", "abuse detection"];

/// Returns true if a message says that a server limits the rate of requests.
pub fn tells_rate_limit(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    LIMITED.iter().any(|words| message.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_limit_is_told_in_any_case() {
        for (message, expected) in [
            ("API rate limit exceeded for installation ID 1.", true),
            ("You have exceeded a Secondary Rate Limit", true),
            ("You have triggered an abuse detection mechanism.", true),
            ("Resource not accessible by integration", false),
            ("", false),
        ] {
            assert_eq!(tells_rate_limit(message), expected, "{message}");
        }
    }
}
