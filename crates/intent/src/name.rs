//! Names: of clusters, machines, fragments, profiles and bases; and the layers.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A name: 1 to 63 lower-case letters, digits and hyphens, not at the ends.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Name(#[schemars(regex(pattern = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"))] String);

/// A text that is no name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no name: use 1 to 63 lower-case letters, digits and inner hyphens")]
pub struct BadName(pub String);

impl Name {
    /// The text of the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Name, BadName> {
        let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        let sound = (1..=63).contains(&text.len())
            && text.bytes().all(inner)
            && !text.starts_with('-')
            && !text.ends_with('-');
        if sound { Ok(Name(text.to_owned())) } else { Err(BadName(text.to_owned())) }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The layers of composition, lowest first. The base stands below them all.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// What holds everywhere.
    Global,
    /// One place or data centre.
    Site,
    /// One cluster.
    Cluster,
    /// One kind of machine.
    Role,
    /// What the machine is there for.
    Workload,
    /// This machine alone.
    Override,
}

impl Layer {
    /// All layers, lowest first.
    pub const ALL: [Layer; 6] =
        [Layer::Global, Layer::Site, Layer::Cluster, Layer::Role, Layer::Workload, Layer::Override];

    /// The folder of the layer.
    pub fn as_str(self) -> &'static str {
        match self {
            Layer::Global => "global",
            Layer::Site => "site",
            Layer::Cluster => "cluster",
            Layer::Role => "role",
            Layer::Workload => "workload",
            Layer::Override => "override",
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Layer {
    type Err = BadLayer;

    fn from_str(text: &str) -> Result<Layer, BadLayer> {
        Layer::ALL.into_iter().find(|layer| layer.as_str() == text).ok_or_else(|| BadLayer(text.to_owned()))
    }
}

/// A text that names no layer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no layer: use global, site, cluster, role, workload or override")]
pub struct BadLayer(pub String);
