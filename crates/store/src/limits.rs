//! What the memory takes: limits of names, keys, values and times to live, told in sentences.

use skillz_json::Value;
use skillz_tool::StoreError;

use crate::expiry;

/// Longest key, in bytes; keys are names, not data.
const KEY_BYTES: usize = 512;
/// Longest value as JSON, in bytes: one megabyte. More belongs into a file.
const VALUE_BYTES: usize = 1_000_000;
/// Longest time to live, in seconds: a thousand years, so that sums stay exact.
const TTL_SECONDS: f64 = 1_000.0 * 366.0 * 86_400.0;

/// Refuses keys that are empty or too long.
pub(crate) fn check_key(key: &str) -> Result<(), StoreError> {
    if key.is_empty() {
        return Err(StoreError::Invalid("The key is empty; a key has 1 to 512 bytes".to_owned()));
    }
    check_prefix(key)
}

/// Refuses prefixes that no key can have.
pub(crate) fn check_prefix(prefix: &str) -> Result<(), StoreError> {
    if prefix.len() <= KEY_BYTES {
        return Ok(());
    }
    let start: String = prefix.chars().take(40).collect();
    Err(StoreError::Invalid(format!(
        "The key `{start}...` has {} bytes; a key has at most {KEY_BYTES}. Use a shorter name, or a hash of the long one",
        prefix.len()
    )))
}

/// Serialises a value, and refuses one that is too large.
pub(crate) fn serialise_value(key: &str, value: &Value) -> Result<String, StoreError> {
    let text = value.to_string();
    if text.len() <= VALUE_BYTES {
        return Ok(text);
    }
    Err(StoreError::Invalid(format!(
        "The value of `{key}` has {} bytes as JSON; a value has at most {VALUE_BYTES}. Split it over several keys",
        text.len()
    )))
}

/// The moment a value expires, in Unix seconds.
pub(crate) fn expiry_of(ttl_seconds: Option<f64>) -> Result<Option<f64>, StoreError> {
    let Some(ttl_seconds) = ttl_seconds else { return Ok(None) };
    if ttl_seconds.is_finite() && ttl_seconds > 0.0 && ttl_seconds <= TTL_SECONDS {
        return Ok(Some(expiry::now() + ttl_seconds));
    }
    Err(StoreError::Invalid(format!(
        "The `ttl` {ttl_seconds} is not a time to live: give seconds above 0 and at most {TTL_SECONDS}, or leave it out to keep the value for ever"
    )))
}

#[cfg(test)]
mod tests {
    use skillz_json::json;

    use super::*;

    #[test]
    fn keys_have_one_to_512_bytes() {
        for key in ["a", " ", "\0", "a/b%_", "ü", &"k".repeat(512), &"é".repeat(256)] {
            assert!(check_key(key).is_ok(), "{key}");
        }
        for key in ["", &"k".repeat(513), &"é".repeat(257)] {
            assert!(matches!(check_key(key), Err(StoreError::Invalid(_))), "{key}");
        }
        assert!(check_prefix("").is_ok());
    }

    #[test]
    fn values_have_a_megabyte_as_json() {
        let fits = json!("x".repeat(VALUE_BYTES - 2));
        assert_eq!(serialise_value("k", &fits).map(|text| text.len()), Ok(VALUE_BYTES));
        let error = serialise_value("k", &json!("x".repeat(VALUE_BYTES - 1))).expect_err("one byte too many");
        assert!(error.to_string().contains("1000001 bytes"), "{error}");
        // Escapes count as they are written.
        assert!(serialise_value("k", &json!("\"".repeat(VALUE_BYTES / 2))).is_err());
    }

    #[test]
    fn times_to_live_are_positive_and_finite() {
        assert_eq!(expiry_of(None), Ok(None));
        for ttl in [0.001, 1.0, 1e9] {
            assert!(expiry_of(Some(ttl)).is_ok(), "{ttl}");
        }
        for ttl in [0.0, -0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300] {
            assert!(matches!(expiry_of(Some(ttl)), Err(StoreError::Invalid(_))), "{ttl}");
        }
    }
}
