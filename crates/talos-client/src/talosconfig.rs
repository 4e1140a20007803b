//! The talosconfig file: contexts with endpoints, nodes and key material (Talos' `client/config` package).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use talos_config::Node;
use zeroize::Zeroizing;

use crate::access::{Access, AccessError};
use crate::yaml::{self, Wiped, YamlError};

/// A talosconfig as read. It holds key material, so it has no `Debug`.
pub struct Talosconfig {
    current: Option<String>,
    root: Wiped,
}

/// One context, checked.
#[derive(Clone, Debug)]
pub struct Context {
    /// The context's name.
    pub name: String,
    /// Where `talosctl` would dial; addresses or names, as they stand there.
    pub endpoints: Vec<String>,
    /// For which nodes `talosctl` would ask by default; as they stand there.
    pub nodes: Vec<String>,
    /// CA, certificate and key.
    pub access: Access,
}

/// Why a talosconfig, or a context of it, cannot be used. Never holds key material.
#[derive(Debug, thiserror::Error)]
pub enum TalosconfigError {
    /// Not readable.
    #[error("The talosconfig cannot be read; write a new one with `talosctl config new`, or correct it")]
    Yaml(#[from] YamlError),
    /// No `contexts`, or not a mapping.
    #[error("The talosconfig has no contexts; add one with `talosctl config merge`")]
    NoContexts,
    /// The named context is not there.
    #[error("The talosconfig has no context `{wanted}`; it has: {known}")]
    UnknownContext {
        /// The name that was asked for.
        wanted: String,
        /// Those that exist, by comma.
        known: String,
    },
    /// No context was named, and the file chooses none.
    #[error("The talosconfig chooses no context; name one of: {known}")]
    NoCurrent {
        /// Those that exist, by comma.
        known: String,
    },
    /// Key material is missing.
    #[error("Context `{context}` has no `{field}`; a certificate, its key and the CA are all needed")]
    Missing {
        /// The context.
        context: String,
        /// `ca`, `crt` or `key`.
        field: &'static str,
    },
    /// A field has another shape.
    #[error("Context `{context}`: `{field}` must be {shape}; correct the talosconfig")]
    Shape {
        /// The context.
        context: String,
        /// The field.
        field: &'static str,
        /// What it must be.
        shape: &'static str,
    },
    /// Key material is not base64.
    #[error("Context `{context}`: `{field}` is not base64; take it unchanged from the file that Talos wrote")]
    Base64 {
        /// The context.
        context: String,
        /// `ca`, `crt` or `key`.
        field: &'static str,
    },
    /// A way to authenticate, or to be forwarded, that only other systems have.
    #[error(
        "Context `{context}` uses `{method}`, which Bronzeward does not speak; use a client certificate \
             of the cluster itself"
    )]
    Unsupported {
        /// The context.
        context: String,
        /// `auth.siderov1`, `auth.basic`, `cluster`, or whatever stands under `auth`.
        method: String,
    },
    /// The key material is there and cannot be used.
    #[error("Context `{context}` cannot be used")]
    Access {
        /// The context.
        context: String,
        /// What is wrong with it.
        #[source]
        source: AccessError,
    },
}

impl Talosconfig {
    /// Reads the text of a talosconfig. Contexts are checked when they are chosen, so that an unusable one
    /// does not stand in the way of its neighbours. Fields that `talosctl` ignores are ignored.
    ///
    /// # Errors
    /// When it is not such YAML, or has no contexts.
    pub fn parse(text: &str) -> Result<Self, TalosconfigError> {
        let root = yaml::read(text)?.ok_or(TalosconfigError::NoContexts)?;
        let current = root.0.get("context").filter(|name| !name.is_null()).and_then(Node::text);
        let current = current.filter(|name| !name.is_empty()).map(str::to_owned);
        let file = Self { current, root };
        if file.contexts().next().is_none() { Err(TalosconfigError::NoContexts) } else { Ok(file) }
    }

    fn contexts(&self) -> impl Iterator<Item = (&str, &Node)> {
        let entries = self.root.0.get("contexts").and_then(Node::entries).unwrap_or_default();
        entries.iter().filter_map(|(name, context)| Some((name.text()?, context)))
    }

    /// The context that the file chooses.
    pub fn current(&self) -> Option<&str> {
        self.current.as_deref()
    }

    /// The names of all contexts, in the file's order.
    pub fn names(&self) -> Vec<&str> {
        self.contexts().map(|(name, _)| name).collect()
    }

    /// A context by name; without one, that which the file chooses.
    ///
    /// # Errors
    /// When it does not exist, lacks key material, or authenticates in a way that is not supported.
    pub fn context(&self, name: Option<&str>) -> Result<Context, TalosconfigError> {
        let known = || crate::text::short(&self.names().join(", "));
        let name = name.or(self.current()).ok_or_else(|| TalosconfigError::NoCurrent { known: known() })?;
        let (name, value) = self.contexts().find(|(found, _)| *found == name).ok_or_else(|| {
            TalosconfigError::UnknownContext { wanted: crate::text::short(name), known: known() }
        })?;
        let fields = Fields { context: name, value };
        fields.refuse_others()?;
        let (ca, crt, key) = (fields.pem("ca")?, fields.pem("crt")?, fields.pem("key")?);
        let access = Access::from_pem(&ca, &crt, &key)
            .map_err(|source| TalosconfigError::Access { context: name.into(), source })?;
        Ok(Context {
            name: name.into(),
            endpoints: fields.strings("endpoints")?,
            nodes: fields.strings("nodes")?,
            access,
        })
    }
}

struct Fields<'a> {
    context: &'a str,
    value: &'a Node,
}

impl Fields<'_> {
    /// The value of a field; a null is none.
    fn get(&self, field: &str) -> Option<&Node> {
        self.value.get(field).filter(|value| !value.is_null())
    }

    fn refuse_others(&self) -> Result<(), TalosconfigError> {
        let method = match (self.get("auth"), self.get("cluster")) {
            (None, None) => return Ok(()),
            (None, Some(_)) => "cluster".into(),
            (Some(auth), cluster) => match auth.entries() {
                Some([]) if cluster.is_none() => return Ok(()),
                Some([]) => "cluster".into(),
                Some(methods) => {
                    let names = methods.iter().filter_map(|(name, _)| name.text());
                    let names: Vec<_> =
                        names.map(|name| format!("auth.{}", crate::text::short(name))).collect();
                    names.join(", ")
                }
                None => "auth".into(),
            },
        };
        Err(TalosconfigError::Unsupported { context: self.context.into(), method })
    }

    fn pem(&self, field: &'static str) -> Result<Zeroizing<Vec<u8>>, TalosconfigError> {
        let missing = || TalosconfigError::Missing { context: self.context.into(), field };
        let value = self.get(field).ok_or_else(missing)?;
        let text = value.text().ok_or_else(|| self.shape(field, "one base64 text"))?;
        if text.is_empty() {
            return Err(missing());
        }
        // a folded text has blanks between its lines
        let packed: Zeroizing<Vec<u8>> =
            Zeroizing::new(text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect());
        STANDARD
            .decode(&*packed)
            .map(Zeroizing::new)
            .map_err(|_| TalosconfigError::Base64 { context: self.context.into(), field })
    }

    fn strings(&self, field: &'static str) -> Result<Vec<String>, TalosconfigError> {
        let shape = || self.shape(field, "a list of addresses");
        let Some(value) = self.get(field) else { return Ok(Vec::new()) };
        let elements = value.elements().ok_or_else(shape)?;
        elements.iter().map(|item| item.text().map(crate::text::short).ok_or_else(shape)).collect()
    }

    fn shape(&self, field: &'static str, shape: &'static str) -> TalosconfigError {
        TalosconfigError::Shape { context: self.context.into(), field, shape }
    }
}
