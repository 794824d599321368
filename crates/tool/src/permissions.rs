//! What a tool's manifest asks for.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, MapAccess, SeqAccess, Visitor},
};

/// The `permissions` of a manifest. The default asks for nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Permissions {
    /// Reach the network: not at all (default), wholly, or some hosts.
    #[serde(default, skip_serializing_if = "NetworkPermission::is_none")]
    pub network: NetworkPermission,
    /// Folders that the tool sees, at the same paths as outside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fs: Vec<FolderPermission>,
    /// Names of environment variables that the tool receives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Let dependencies run code while they are installed (npm scripts, source distributions).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub install_scripts: bool,
}

/// The `network` permission: `false`, `true`, or a list of host patterns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum NetworkPermission {
    /// `true` opens the whole network, `false` none of it.
    All(bool),
    /// Only these hosts.
    Hosts(Vec<HostPattern>),
}

/// One allowed host: `api.example.com`, `*.example.com`, either with `:port`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostPattern {
    host: String,
    port: Option<u16>,
}

/// One folder of `permissions.fs`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FolderPermission {
    /// An absolute path, or one that starts with `$ROOT` (each workspace root) or `$DATA` (the tool's data folder).
    pub path: String,
    /// Read only (default), or read and write.
    pub mode: FolderMode,
}

/// How a granted folder may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FolderMode {
    /// Read only.
    #[default]
    Ro,
    /// Read and write.
    Rw,
}

impl NetworkPermission {
    /// Whether nothing of the network is asked for.
    pub fn is_none(&self) -> bool {
        match self {
            Self::All(all) => !all,
            Self::Hosts(hosts) => hosts.is_empty(),
        }
    }

    /// Whether `host` at `port` is within the permission.
    pub fn allows(&self, host: &str, port: u16) -> bool {
        match self {
            Self::All(all) => *all,
            Self::Hosts(hosts) => hosts.iter().any(|pattern| pattern.matches(host, port)),
        }
    }
}

/// Read by hand, so that whoever writes it wrongly learns which host is wrong, and what there is.
impl<'de> Deserialize<'de> for NetworkPermission {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Forms;

        impl<'de> Visitor<'de> for Forms {
            type Value = NetworkPermission;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("`network` to be true, false, or a list of hosts such as [\"api.example.com\"]")
            }

            fn visit_bool<E: de::Error>(self, all: bool) -> Result<Self::Value, E> {
                Ok(NetworkPermission::All(all))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, sequence: A) -> Result<Self::Value, A::Error> {
                Vec::deserialize(de::value::SeqAccessDeserializer::new(sequence)).map(NetworkPermission::Hosts)
            }
        }

        deserializer.deserialize_any(Forms)
    }
}

/// Read by hand for the same reason.
impl<'de> Deserialize<'de> for FolderPermission {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Fields {
            path: String,
            #[serde(default)]
            mode: FolderMode,
        }

        struct Forms;

        impl<'de> Visitor<'de> for Forms {
            type Value = FolderPermission;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("each entry of `fs` to be an object such as {\"path\": \"$ROOT\", \"mode\": \"ro\"}")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let Fields { path, mode } = Fields::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(FolderPermission { path, mode })
            }
        }

        deserializer.deserialize_any(Forms)
    }
}

impl Default for NetworkPermission {
    fn default() -> Self {
        Self::All(false)
    }
}

impl HostPattern {
    /// Whether `host` at `port` fits; `*.example.com` fits every name below `example.com`, but not itself.
    pub fn matches(&self, host: &str, port: u16) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let host_fits = match self.host.strip_prefix("*.") {
            Some(parent) => host.strip_suffix(parent).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
            None => host == self.host,
        };
        host_fits && self.port.is_none_or(|allowed| allowed == port)
    }
}

impl TryFrom<String> for HostPattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') => {
                let port = port.parse().map_err(|_| format!("`{text}` has no valid port after `:`"))?;
                (host, Some(port))
            }
            _ => (text.as_str(), None),
        };
        let plain = host.strip_prefix("*.").unwrap_or(host);
        let valid = !plain.is_empty()
            && plain.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
            && !plain.split('.').any(str::is_empty);
        if !valid {
            return Err(format!("`{text}` is no host; write `api.example.com`, `*.example.com` or either with `:port`"));
        }
        Ok(Self { host: host.to_ascii_lowercase(), port })
    }
}

impl From<HostPattern> for String {
    fn from(pattern: HostPattern) -> Self {
        match pattern.port {
            Some(port) => format!("{}:{port}", pattern.host),
            None => pattern.host,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> HostPattern {
        HostPattern::try_from(text.to_owned()).expect(text)
    }

    #[test]
    fn what_is_written_wrongly_is_explained() {
        for (text, says) in [
            ("{\"network\": \"yes\"}", "true, false, or a list of hosts"),
            ("{\"network\": [\"https://example.com/x\"]}", "`https://example.com/x`"),
            ("{\"network\": [7]}", "string"),
            ("{\"fs\": [\"/tmp\"]}", "{\"path\": \"$ROOT\", \"mode\": \"ro\"}"),
            ("{\"fs\": [{\"path\": \"/tmp\", \"mode\": \"rx\"}]}", "rx"),
            ("{\"fs\": [{\"folder\": \"/tmp\"}]}", "folder"),
        ] {
            let error = serde_json::from_str::<Permissions>(text).expect_err(text).to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
        let good = "{\"network\": [\"*.example.com:443\"], \"fs\": [{\"path\": \"$DATA\", \"mode\": \"rw\"}]}";
        let read: Permissions = serde_json::from_str(good).expect(good);
        assert_eq!(serde_json::from_str::<Permissions>(&serde_json::to_string(&read).expect("JSON")).expect("the same"), read);
    }

    #[test]
    fn patterns_match_whole_labels() {
        assert!(pattern("api.example.com").matches("API.example.com", 443));
        assert!(!pattern("example.com").matches("evil-example.com", 443));
        assert!(pattern("*.example.com").matches("a.b.example.com", 1));
        assert!(!pattern("*.example.com").matches("example.com", 1));
        assert!(!pattern("*.example.com").matches("badexample.com", 1));
        assert!(pattern("*.example.com:443").matches("a.example.com", 443));
        assert!(!pattern("*.example.com:443").matches("a.example.com", 80));
        for text in ["", "*", "*.", "a..b", "http://a", "a b", "a:99999"] {
            assert!(HostPattern::try_from(text.to_owned()).is_err(), "{text}");
        }
    }

    #[test]
    fn nothing_is_asked_for_by_default() {
        let permissions: Permissions = serde_json::from_str("{}").expect("all fields are optional");
        assert_eq!(permissions, Permissions::default());
        assert!(permissions.network.is_none());
        assert!(serde_json::from_str::<Permissions>(r#"{"netwrok":true}"#).is_err());
    }
}
