//! Making signatures: in process with a key file, or as `git` would with `ssh-keygen`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ssh_key::public::KeyData;
use ssh_key::{HashAlg, LineEnding, PrivateKey, PublicKey};

/// Why nothing was signed.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    /// A key file cannot be read.
    #[error("Cannot read the SSH key `{path}`")]
    ReadKey {
        /// The file.
        path: PathBuf,
        /// Why.
        source: ssh_key::Error,
    },
    /// The key is locked by a passphrase, and nobody is there to ask.
    #[error(
        "The SSH key `{path}` has a passphrase: the reconciler needs a key without one, kept on its own disk"
    )]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// Signing in process failed.
    #[error("The SSH key cannot sign")]
    Sign(#[source] ssh_key::Error),
    /// Git has no signing key for this person.
    #[error(
        "Git names no SSH signing key: `git config user.signingKey ~/.ssh/id_ed25519.pub` and \
         `git config gpg.format ssh`, or pass `--signing-key FILE`"
    )]
    NoKey,
    /// Git signs with something that is not SSH.
    #[error("Git is set to sign with `{format}`: only SSH keys count, `git config gpg.format ssh`")]
    NotSsh {
        /// The value of `gpg.format`.
        format: String,
    },
    /// A program could not be started.
    #[error("Cannot start `{program}`")]
    Start {
        /// The program.
        program: String,
        /// Why.
        source: std::io::Error,
    },
    /// A program ended with an error.
    #[error("`{program}` did not sign: {message}")]
    Program {
        /// The program.
        program: String,
        /// Its own words.
        message: String,
    },
}

/// Something that makes SSH signatures.
pub trait Signer: Send + Sync {
    /// The public key that will verify.
    fn public_key(&self) -> &PublicKey;

    /// An armoured signature over `payload` in `namespace`.
    ///
    /// # Errors
    /// [`SignError`].
    fn sign(&self, namespace: &str, payload: &[u8]) -> Result<String, SignError>;
}

/// A key held in this process: the reconciler's.
pub struct KeySigner {
    key: PrivateKey,
    public: PublicKey,
}

impl std::fmt::Debug for KeySigner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("KeySigner").field(&self.public.fingerprint(HashAlg::Sha256)).finish()
    }
}

impl KeySigner {
    /// A signer for a key that is already in memory.
    pub fn new(key: PrivateKey) -> KeySigner {
        let public = key.public_key().clone();
        KeySigner { key, public }
    }

    /// Reads an OpenSSH private key without a passphrase.
    ///
    /// # Errors
    /// [`SignError::ReadKey`] or [`SignError::Locked`].
    pub fn read(path: &Path) -> Result<KeySigner, SignError> {
        let key = PrivateKey::read_openssh_file(path)
            .map_err(|source| SignError::ReadKey { path: path.to_path_buf(), source })?;
        if key.is_encrypted() {
            return Err(SignError::Locked { path: path.to_path_buf() });
        }
        Ok(KeySigner::new(key))
    }
}

impl Signer for KeySigner {
    fn public_key(&self) -> &PublicKey {
        &self.public
    }

    fn sign(&self, namespace: &str, payload: &[u8]) -> Result<String, SignError> {
        let signature = self.key.sign(namespace, HashAlg::Sha512, payload).map_err(SignError::Sign)?;
        signature.to_pem(LineEnding::LF).map_err(SignError::Sign)
    }
}

/// Signs with `ssh-keygen -Y sign` as `git commit -S` would: agents and hardware keys work.
#[derive(Debug)]
pub struct SshKeygen {
    program: String,
    /// What `-f` gets: a private key, or a public key whose private half is in the agent.
    key_file: PathBuf,
    public: PublicKey,
    /// A literal key of git's settings has to stand in a file while `ssh-keygen` runs.
    literal: bool,
}

impl SshKeygen {
    /// A signer for a key file (private, or public with the private half in the agent).
    ///
    /// # Errors
    /// [`SignError::ReadKey`].
    pub fn with_file(path: &Path) -> Result<SshKeygen, SignError> {
        let public = read_public(path)?;
        Ok(SshKeygen {
            program: "ssh-keygen".to_owned(),
            key_file: path.to_path_buf(),
            public,
            literal: false,
        })
    }

    /// A signer with git's own settings, asked of `git config` inside `work_dir`:
    /// `gpg.format`, `gpg.ssh.program`, `user.signingKey`, `gpg.ssh.defaultKeyCommand`.
    ///
    /// # Errors
    /// [`SignError::NoKey`] or [`SignError::NotSsh`] when git would not sign with SSH.
    pub fn from_git(work_dir: &Path) -> Result<SshKeygen, SignError> {
        if let Some(format) = git_config(work_dir, &["gpg.format"])?.filter(|format| format != "ssh") {
            return Err(SignError::NotSsh { format });
        }
        let program = git_config(work_dir, &["--type=path", "gpg.ssh.program"])?;
        let program = program.unwrap_or_else(|| "ssh-keygen".to_owned());
        let setting = match git_config(work_dir, &["user.signingKey"])? {
            Some(setting) => setting,
            None => default_key(work_dir)?.ok_or(SignError::NoKey)?,
        };
        let literal =
            setting.strip_prefix("key::").or_else(|| setting.starts_with("ssh-").then_some(&*setting));
        if let Some(text) = literal {
            let public = parse_public(text)
                .map_err(|source| SignError::ReadKey { path: "user.signingKey".into(), source })?;
            return Ok(SshKeygen { program, key_file: PathBuf::new(), public, literal: true });
        }
        let path = git_config(work_dir, &["--type=path", "user.signingKey"])?.map_or(setting, |path| path);
        let path = work_dir.join(path);
        let public = read_public(&path)?;
        Ok(SshKeygen { program, key_file: path, public, literal: false })
    }
}

impl Signer for SshKeygen {
    fn public_key(&self) -> &PublicKey {
        &self.public
    }

    fn sign(&self, namespace: &str, payload: &[u8]) -> Result<String, SignError> {
        let start = |source| SignError::Start { program: self.program.clone(), source };
        let mut command = Command::new(&self.program);
        command.args(["-Y", "sign", "-n", namespace, "-f"]);
        let holder;
        if self.literal {
            let text = self.public.to_openssh().map_err(SignError::Sign)?;
            let mut file = tempfile::NamedTempFile::new().map_err(start)?;
            file.write_all(text.as_bytes()).map_err(start)?;
            holder = file;
            command.arg("-U").arg(holder.path());
        } else {
            command.arg(&self.key_file);
        }
        // the payload holds no secret: a commit, or an approval statement
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(start)?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(payload).map_err(start)?;
        }
        let output = child.wait_with_output().map_err(start)?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
            return Err(SignError::Program { program: self.program.clone(), message });
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// Reads one public key line; tabs and doubled blanks are accepted as OpenSSH does.
///
/// # Errors
/// The parser's own.
pub fn parse_public(text: &str) -> Result<PublicKey, ssh_key::Error> {
    let mut fields = text.split_ascii_whitespace();
    let (kind, blob) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
    PublicKey::from_openssh(&format!("{kind} {blob}"))
}

/// `SHA256:…` of a key, as `ssh-keygen -l` prints it.
pub fn fingerprint(key: &KeyData) -> String {
    key.fingerprint(HashAlg::Sha256).to_string()
}

fn read_public(path: &Path) -> Result<PublicKey, SignError> {
    let failed = |source| SignError::ReadKey { path: path.to_path_buf(), source };
    let beside = PathBuf::from(format!("{}.pub", path.display()));
    for candidate in [path, &beside] {
        if let Ok(text) = std::fs::read_to_string(candidate)
            && let Ok(key) = parse_public(&text)
        {
            return Ok(key);
        }
    }
    PrivateKey::read_openssh_file(path).map(|key| key.public_key().clone()).map_err(failed)
}

fn git_config(work_dir: &Path, what: &[&str]) -> Result<Option<String>, SignError> {
    let output = Command::new("git")
        .arg("-C")
        .arg(work_dir)
        .args(["config", "--get"])
        .args(what)
        .stderr(Stdio::null())
        .output()
        .map_err(|source| SignError::Start { program: "git".to_owned(), source })?;
    let text = String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned();
    Ok((output.status.success() && !text.is_empty()).then_some(text))
}

fn default_key(work_dir: &Path) -> Result<Option<String>, SignError> {
    let Some(command) = git_config(work_dir, &["gpg.ssh.defaultKeyCommand"])? else { return Ok(None) };
    let output = Command::new("sh")
        .args(["-c", &command])
        .current_dir(work_dir)
        .output()
        .map_err(|source| SignError::Start { program: command.clone(), source })?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().next().filter(|line| output.status.success() && !line.is_empty()).map(str::to_owned))
}
