//! Settings: the reconciler's `bronzeward.toml`, and a person's own.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use bronzeward_git::GitProgram;
use bronzeward_intent::Span;
use serde::{Deserialize, Serialize};

use crate::cli::Cli;
use crate::exit::refuse;

/// `bronzeward.toml`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The commit of main that is trusted as it is.
    pub anchor: String,
    /// Root keys, as in a `.pub` file.
    pub root_keys: Vec<String>,
    /// Fingerprints (`SHA256:…`) of keys that count nowhere; outlives any state.
    #[serde(default)]
    pub denied_keys: Vec<String>,
    /// The shard.
    #[serde(default = "default_shard")]
    pub shard: String,
    /// This process's own name; the host's when it is not written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Where intent lives.
    pub repository: Repository,
    /// Where state lives.
    pub state: State,
    /// Keys.
    pub identity: Identity,
    /// How nodes are watched.
    #[serde(default)]
    pub watch: Watch,
    /// Where people ask.
    #[serde(default)]
    pub listen: Listen,
}

/// Where intent lives.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repository {
    /// The remote.
    pub url: String,
    /// The branch.
    #[serde(default = "default_branch")]
    pub branch: String,
    /// How often it is asked.
    #[serde(default = "default_poll")]
    pub poll: Span,
    /// Certificates (PEM) that are trusted instead of the system's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// User for HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The file with the password or token for HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_file: Option<PathBuf>,
    /// The command that stands for `ssh`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh_command: Option<String>,
}

/// Where state lives.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The remote; the configuration's when empty.
    #[serde(default)]
    pub url: String,
    /// A state commit that must be in the chain.
    pub at_least: String,
    /// The reconciler's own disk.
    pub disk: PathBuf,
}

/// Keys.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Signs state.
    pub ssh_key: PathBuf,
    /// Reads secrets; the SSH key serves for both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_identity: Option<PathBuf>,
    /// The principal in the author line of state commits.
    #[serde(default = "default_principal")]
    pub principal: String,
}

/// How nodes are watched.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Watch {
    /// How often every node is read whatever the watches say.
    pub sweep: Span,
    /// How long a dial may take.
    pub connect: Span,
    /// How long a question may take.
    pub request: Span,
}

impl Default for Watch {
    fn default() -> Watch {
        Watch { sweep: Span::from_secs(300), connect: Span::from_secs(10), request: Span::from_secs(30) }
    }
}

/// Where people ask.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Listen {
    /// Address and port; only loopback until tokens are supported.
    pub address: String,
}

impl Default for Listen {
    fn default() -> Listen {
        Listen { address: "127.0.0.1:8080".to_owned() }
    }
}

fn default_shard() -> String {
    "default".to_owned()
}

fn default_branch() -> String {
    "main".to_owned()
}

fn default_poll() -> Span {
    Span::from_secs(60)
}

fn default_principal() -> String {
    "reconciler".to_owned()
}

/// Where and why a file cannot be read, without the line itself: an address in it may hold a password.
fn told(text: &str, err: &toml::de::Error) -> String {
    let at = err.span().and_then(|span| text.get(..span.start));
    let line = at.map_or(1, |before| before.matches('\n').count() + 1);
    format!("line {line}: {}", err.message())
}

impl Settings {
    /// Reads the file; relative paths are below its folder.
    pub fn read(path: &Path) -> Result<Settings> {
        let text = std::fs::read_to_string(path).with_context(|| {
            format!("Cannot read the settings `{}`; `bronzeward init` writes them", path.display())
        })?;
        let mut settings: Settings = toml::from_str(&text).map_err(|err| {
            refuse(format!("The settings `{}` cannot be read: {}", path.display(), told(&text, &err)))
        })?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let below = |path: &mut PathBuf| *path = folder.join(&*path);
        below(&mut settings.state.disk);
        below(&mut settings.identity.ssh_key);
        settings.identity.age_identity.iter_mut().for_each(below);
        settings.repository.ca_file.iter_mut().for_each(below);
        settings.repository.password_file.iter_mut().for_each(below);
        Ok(settings)
    }

    /// The path that the arguments name, or one of the usual places.
    pub fn path(cli: &Cli) -> Result<PathBuf> {
        if let Some(named) = &cli.settings {
            return Ok(named.clone());
        }
        let usual = [cli.directory.join("bronzeward.toml"), PathBuf::from("/etc/bronzeward/bronzeward.toml")];
        let help = "Name the reconciler's settings with --settings FILE or BRONZEWARD_SETTINGS";
        usual.into_iter().find(|path| path.is_file()).ok_or_else(|| refuse(help))
    }
}

/// A setting, and where it came from.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Effective {
    /// Its value.
    pub value: Option<String>,
    /// `flag or environment`, a file, or `default`.
    pub from: String,
}

/// A person's settings.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Person {
    /// The talosconfig.
    pub talosconfig: Effective,
    /// The age identity, or SSH key, that decrypts.
    pub age_identity: Effective,
    /// The key that signs; git's own when empty.
    pub signing_key: Effective,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PersonFile {
    talosconfig: Option<String>,
    age_identity: Option<String>,
    signing_key: Option<String>,
}

impl Person {
    /// Flags and environment first, then `~/.config/bronzeward/config.toml`, then defaults.
    pub fn read(cli: &Cli, git: &GitProgram) -> Result<Person> {
        let path = home().map(|home| home.join(".config/bronzeward/config.toml"));
        let file = match path.as_ref().map(std::fs::read_to_string) {
            Some(Ok(text)) => toml::from_str::<PersonFile>(&text).map_err(|err| {
                let path = path.as_deref().unwrap_or(Path::new("config.toml")).display();
                refuse(format!("Your settings `{path}` cannot be read: {}", told(&text, &err)))
            })?,
            _ => PersonFile::default(),
        };
        let shown = path.map(|path| path.display().to_string()).unwrap_or_default();
        let pick = |flag: Option<&PathBuf>, filed: Option<String>, default: Option<String>| {
            if let Some(flag) = flag {
                return Effective {
                    value: Some(flag.display().to_string()),
                    from: "flag or environment".into(),
                };
            }
            if let Some(filed) = filed {
                return Effective { value: Some(filed), from: shown.clone() };
            }
            Effective { value: default, from: "default".into() }
        };
        let talos = home().map(|home| home.join(".talos/config")).filter(|path| path.exists());
        let signing = git.run(&["config", "--get", "user.signingKey"]).ok();
        let mut signing_key = pick(cli.signing_key.as_ref(), file.signing_key, None);
        if signing_key.value.is_none() && signing.is_some() {
            signing_key.from = "git (user.signingKey)".into();
        }
        Ok(Person {
            talosconfig: pick(
                cli.talosconfig.as_ref(),
                file.talosconfig,
                talos.map(|path| path.display().to_string()),
            ),
            age_identity: pick(cli.age_identity.as_ref(), file.age_identity, None),
            signing_key,
        })
    }
}

#[allow(clippy::disallowed_methods, reason = "the settings are where the environment is read")]
fn home() -> Option<PathBuf> {
    std::env::var("HOME").ok().map(PathBuf::from)
}

/// The host's name, as this process's own.
pub fn host() -> String {
    let read = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .or_else(|_| std::fs::read_to_string("/etc/hostname"));
    read.map(|text| text.trim().to_owned())
        .ok()
        .filter(|text| !text.is_empty())
        .unwrap_or_else(|| "localhost".into())
}
