//! `init`: from an empty clone and running machines to a repository under approval. Writes nothing to any node.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use bronzeward_compile::compose;
use bronzeward_git::sign::{KeySigner, Signer};
use bronzeward_git::{Ident, NewCommit, Oid, RefUpdate, Remote, TreeEdit};
use bronzeward_intent::cluster::{ClusterKind, Identity, MachineKind};
use bronzeward_intent::lock::SecretKind;
use bronzeward_intent::repository::{
    ApprovalCounts, RepositoryKind, SecretStore, SelfApproval, SignedMain, StoreKind,
};
use bronzeward_intent::yaml_text::to_yaml;
use bronzeward_intent::{
    ActorRole, ApiVersion, Cluster, Defaults, Files, Governance, LockedSecret, Machine, Name, Platform,
    Policy, Principal, PrincipalKind, Repository, Role, SecretsLock,
};
use bronzeward_reconcile::ports::NodeAccess;
use bronzeward_secrets::age_file::{
    installation_path, recipients, seal_installation, seal_secret, secret_path,
};
use bronzeward_secrets::{InstallationKey, Label, SecretHeader, SecretValue};
use bronzeward_state::model::{Governed, Installation, InstallationMode, Seen};
use bronzeward_state::{Transaction, branch};
use jiff::Timestamp;
use ssh_key::{LineEnding, PrivateKey};
use talos_client::{
    Context as TalosContext, Deadlines, Dial, Dialer, Endpoint, Facts, MachineType, Talosconfig,
};

use crate::cli::{Cli, Init};
use crate::commands::import::block_on;
use crate::commands::now;
use crate::context::{Clone, MAIN, SHARD};
use crate::exit::{Exit, refuse};
use crate::output;
use crate::settings::{Listen, Repository as RepositorySettings, Settings, State, Watch};

struct Found {
    name: Name,
    endpoint: bronzeward_intent::cluster::Endpoint,
    facts: Facts,
}

/// `init`.
pub fn run(cli: &Cli, args: &Init) -> Result<Exit> {
    let clone = Clone::open(cli)?;
    refuse_used(&clone)?;
    let out = outside(&clone, &args.out.clone().unwrap_or_else(|| beside(&clone.dir)))?;
    let cluster: Name = args.cluster.parse()?;
    let (talosconfig, context) = access(&clone, args)?;
    let machines = ask_nodes(args, &context)?;
    let begun = begin(&clone, args, &cluster, &machines, &talosconfig)?;
    let (anchor, genesis) = (begun.anchor, begun.genesis);
    write_out(&out, &begun.reconciler_key, &begun.root_key)?;
    push(&clone, anchor, genesis)?;
    let path = out.join("bronzeward.toml");
    write_secret(&path, toml::to_string(&settings(&clone, args, &begun)?)?.as_bytes())?;
    clone.git.run(&["switch", "--quiet", "--force-create", MAIN, &anchor.to_string()])?;
    output::line(&format!("main begins at {anchor}, the state at {genesis}"));
    for machine in &machines {
        let role = role_of(&machine.facts).as_str();
        output::line(&format!("{cluster}/{}: {role} at {}", machine.name, machine.endpoint));
    }
    let email = clone.email()?;
    output::line(&format!(
        "you ({email}) are the only approver: `selfApproval: allowed` until there are two"
    ));
    output::line(&format!(
        "settings and keys: {} (keep the root key apart, off this machine)",
        out.display()
    ));
    output::line(&format!("next: bronzeward run --settings {}", path.display()));
    Ok(Exit::Fine)
}

/// What was made, and is not published yet.
struct Begun {
    anchor: Oid,
    genesis: Oid,
    reconciler: String,
    reconciler_key: PrivateKey,
    root_key: PrivateKey,
}

/// Makes keys, the first tree and the first state; writes objects of the clone, and nothing else.
fn begin(
    clone: &Clone,
    args: &Init,
    cluster: &Name,
    machines: &[Found],
    talosconfig: &SecretValue,
) -> Result<Begun> {
    let now = now();
    let signer = clone.signer()?;
    let email = clone.email()?;
    let reconciler = format!("reconciler@{cluster}");
    let (reconciler_key, root_key) = (new_key(&reconciler)?, new_key("bronzeward-root")?);
    let reconciler_line = public_line(&reconciler_key)?;
    let person = person_recipient(clone, args, &signer)?;
    let key = InstallationKey::new(random()?);
    let id = uuid(random()?);
    let repository = repository_file(&id, &email, &person, &reconciler, &reconciler_line);
    let signers = format!("{email} {}\n{reconciler} {reconciler_line}\n", public_line_of(&signer)?);
    let mut files: Vec<(String, Vec<u8>)> = vec![
        ("bronzeward.yaml".into(), with_schema("repository", &to_yaml(&repository))),
        ("allowed_signers".into(), signers.into_bytes()),
    ];
    let everybody = repository
        .policy
        .principals
        .iter()
        .filter_map(|(who, p)| Some((who.as_str(), p.recipient.as_deref()?)));
    files.push((installation_path(key.id()), seal_installation(&key, &recipients(everybody)?)?));
    files.extend(cluster_files(args, cluster, machines)?);
    files.extend(access_files(&key, &id, cluster, &reconciler, &reconciler_line, talosconfig)?);
    let anchor = anchor(clone, &files, &clone.ident(now)?, &signer)?;
    let tree = clone.repo.tree_of(anchor)?;
    let governance =
        Governance::load(&Files::from_tree(&tree)?).map_err(|findings| refuse(findings.to_string()))?;
    let genesis = genesis(clone, &id, anchor, &governance, now, KeySigner::new(root_key.clone()))?;
    Ok(Begun { anchor, genesis, reconciler, reconciler_key, root_key })
}

fn settings(clone: &Clone, args: &Init, begun: &Begun) -> Result<Settings> {
    Ok(Settings {
        anchor: begun.anchor.to_string(),
        root_keys: vec![public_line(&begun.root_key)?],
        denied_keys: Vec::new(),
        shard: SHARD.to_owned(),
        owner: None,
        repository: repository_settings(clone, args)?,
        state: State {
            url: clone.git.config("remote.bronzeward-state.url")?.unwrap_or_default(),
            at_least: begun.genesis.to_string(),
            disk: "disk".into(),
        },
        identity: crate::settings::Identity {
            ssh_key: "reconciler_ed25519".into(),
            age_identity: None,
            principal: begun.reconciler.clone(),
        },
        watch: Watch::default(),
        listen: Listen::default(),
    })
}

fn refuse_used(clone: &Clone) -> Result<()> {
    let fetched = clone.git.fetch(&clone.repo, &["+refs/heads/*:refs/remotes/origin/*"])?;
    if let Some(main) = fetched.refs.get("refs/heads/main") {
        let tree = clone.repo.tree_of(*main)?;
        if tree.read("bronzeward.yaml")?.is_some() {
            return Err(refuse("main holds a `bronzeward.yaml` already: this repository was begun before"));
        }
        return Err(refuse("main is not empty: begin in an empty repository"));
    }
    if clone.store().fetch().is_ok() {
        return Err(refuse(format!("`{}` exists already: this state was begun before", branch(SHARD))));
    }
    Ok(())
}

/// The folder beside the clone.
fn beside(dir: &Path) -> PathBuf {
    let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
    dir.with_file_name(format!("{name}-reconciler"))
}

/// Keys never lie where they could be committed.
fn outside(clone: &Clone, out: &Path) -> Result<PathBuf> {
    let inside = || refuse("The keys must not lie inside the clone: name another folder with --out");
    let top = clone.dir.canonicalize()?;
    // judged before anything is made: by what is there already of the path
    let absolute = std::path::absolute(out)?;
    let there = absolute.ancestors().find_map(|folder| folder.canonicalize().ok());
    if there.is_some_and(|there| there.starts_with(&top)) {
        return Err(inside());
    }
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(out)
        .with_context(|| format!("Cannot make `{}`", out.display()))?;
    let full = out.canonicalize()?;
    if full.starts_with(&top) {
        return Err(inside());
    }
    if fs::read_dir(&full)?.next().is_some() {
        return Err(refuse(format!("`{}` is not empty: name a new folder for the keys", full.display())));
    }
    Ok(full)
}

fn access(clone: &Clone, args: &Init) -> Result<(SecretValue, TalosContext)> {
    let path = clone.person.talosconfig.value.clone();
    let path = path.ok_or_else(|| refuse("Name your talosconfig with --talosconfig FILE"))?;
    let text = fs::read_to_string(&path).with_context(|| format!("Cannot read the talosconfig `{path}`"))?;
    let config = Talosconfig::parse(&text)?;
    let context = config.context(args.context.as_deref())?;
    let value = SecretValue::new(text);
    if args.context.is_none() {
        bronzeward_reconcile::nodes::parse_access(&NodeAccess(value.clone())).map_err(refuse)?;
    } else if config.current() != args.context.as_deref() {
        return Err(refuse(
            "The talosconfig's current context is another one: `talosctl config context NAME` first, since the whole file is stored",
        ));
    }
    Ok((value, context))
}

fn ask_nodes(args: &Init, context: &TalosContext) -> Result<Vec<Found>> {
    let wanted: Vec<(Option<Name>, String)> = if args.machines.is_empty() {
        context.nodes.iter().map(|node| (None, node.clone())).collect()
    } else {
        args.machines
            .iter()
            .map(|text| {
                let (name, address) =
                    text.split_once('=').ok_or_else(|| refuse(format!("`{text}` is not NAME=ADDRESS")))?;
                Ok((Some(name.parse::<Name>()?), address.to_owned()))
            })
            .collect::<Result<_>>()?
    };
    if wanted.is_empty() {
        return Err(refuse("The talosconfig names no nodes: name machines with --machine NAME=ADDRESS"));
    }
    block_on(async {
        let dialer =
            Dialer::new(Deadlines { connect: Duration::from_secs(10), request: Duration::from_secs(30) });
        let mut found = Vec::new();
        for (name, address) in wanted {
            let endpoint: bronzeward_intent::cluster::Endpoint = address.parse()?;
            let dialled: Endpoint = endpoint.full().parse()?;
            let node = dialer.dial(&dialled, &context.access).await?;
            let facts = node.facts().await?;
            let host = facts
                .hostname
                .as_deref()
                .and_then(|host| host.split('.').next())
                .map(str::to_ascii_lowercase);
            let name = match name {
                Some(name) => name,
                None => host
                    .unwrap_or_default()
                    .parse()
                    .with_context(|| format!("The host name of {address} is no name"))?,
            };
            found.push(Found { name, endpoint, facts });
        }
        Ok(found)
    })
}

fn role_of(facts: &Facts) -> Role {
    match facts.machine_type {
        Some(MachineType::Worker) => Role::Worker,
        _ => Role::Controlplane,
    }
}

fn repository_file(
    id: &str,
    email: &str,
    person: &str,
    reconciler: &str,
    reconciler_key: &str,
) -> Repository {
    let principals = BTreeMap::from([
        (
            email.to_owned(),
            Principal {
                kind: PrincipalKind::Human,
                roles: vec![
                    ActorRole::Author,
                    ActorRole::Publisher,
                    ActorRole::Approver,
                    ActorRole::RecoveryAdmin,
                ],
                recipient: Some(person.to_owned()),
            },
        ),
        (
            reconciler.to_owned(),
            Principal {
                kind: PrincipalKind::Automation,
                roles: vec![ActorRole::Reconciler],
                recipient: Some(reconciler_key.to_owned()),
            },
        ),
    ]);
    Repository {
        api_version: ApiVersion::V1Alpha1,
        kind: RepositoryKind::Repository,
        id: id.to_owned(),
        requires: "=0.1".to_owned(),
        secrets: SecretStore { store: StoreKind::Age, address: None, mount: None, transit: None },
        policy: Policy {
            principals,
            approvals: ApprovalCounts { configuration: 1, governance: 1 },
            self_approval: SelfApproval::Allowed,
            signed_main: SignedMain::Optional,
        },
        defaults: Defaults::default(),
    }
}

fn cluster_files(args: &Init, cluster: &Name, machines: &[Found]) -> Result<Vec<(String, Vec<u8>)>> {
    let ids: Vec<&str> = machines.iter().filter_map(|found| found.facts.cluster_id.as_deref()).collect();
    let Some(id) = ids.first() else { return Err(refuse("No node reports a cluster id yet")) };
    if ids.iter().any(|other| other != id) {
        return Err(refuse("The nodes belong to different clusters"));
    }
    let platform = match args.platform.as_str() {
        "cloud" => Platform::Cloud,
        "container" => Platform::Container,
        _ => Platform::Metal,
    };
    let contract = match &args.contract {
        Some(contract) => contract.clone(),
        None => {
            let control = machines
                .iter()
                .find(|found| role_of(&found.facts) == Role::Controlplane)
                .or(machines.first());
            let version = control.map(|found| found.facts.talos_version.clone()).unwrap_or_default();
            version.split('.').take(2).collect::<Vec<_>>().join(".")
        }
    };
    compose::tables(cluster, &contract).map_err(|finding| refuse(finding.to_string()))?;
    compose::check_sent(cluster, &contract).map_err(|finding| refuse(finding.to_string()))?;
    let control =
        machines.iter().find(|found| role_of(&found.facts) == Role::Controlplane).or(machines.first());
    let address = control.map(|found| found.endpoint.0.ip().to_string()).unwrap_or_default();
    let file = Cluster {
        api_version: ApiVersion::V1Alpha1,
        kind: ClusterKind::Cluster,
        name: cluster.clone(),
        talos_cluster_id: (*id).to_owned(),
        endpoint: format!("https://{address}:6443"),
        contract,
        talos: None,
        foreign_owned: Vec::new(),
        rollout: Default::default(),
        lints: BTreeMap::new(),
    };
    let mut files =
        vec![(format!("clusters/{cluster}/cluster.yaml"), with_schema("cluster", &to_yaml(&file)))];
    for found in machines {
        let missing = || refuse(format!("The node at {} reports no node id yet", found.endpoint));
        let file = Machine {
            api_version: ApiVersion::V1Alpha1,
            kind: MachineKind::Machine,
            name: found.name.clone(),
            identity: Identity {
                node: found.facts.node_id.clone().ok_or_else(missing)?,
                uuid: found.facts.smbios_uuid.clone(),
            },
            endpoint: found.endpoint,
            platform,
            role: role_of(&found.facts),
        };
        let path = format!("clusters/{cluster}/machines/{}.yaml", found.name);
        files.push((path, with_schema("machine", &to_yaml(&file))));
    }
    Ok(files)
}

/// The access to nodes: kind `access`, encrypted to the reconciler alone; it never compiles into anything.
fn access_files(
    key: &InstallationKey,
    repository: &str,
    cluster: &Name,
    reconciler: &str,
    reconciler_key: &str,
    talosconfig: &SecretValue,
) -> Result<Vec<(String, Vec<u8>)>> {
    let name = bronzeward_reconcile::ACCESS;
    let kind = SecretKind::Access;
    let header = SecretHeader {
        format: 1,
        repository: repository.to_owned(),
        cluster: cluster.to_string(),
        name: name.to_owned(),
        version: 1,
        kind: kind.as_str().to_owned(),
    };
    let sealed = seal_secret(&header, talosconfig, &recipients([(reconciler, reconciler_key)])?)?;
    let value = key.digest(
        Label::Value,
        repository,
        cluster.as_str(),
        kind.as_str(),
        talosconfig.expose().as_bytes(),
    );
    let mut lock = SecretsLock::default();
    lock.secrets.insert(name.to_owned(), LockedSecret { version: 1, kind, fields: Vec::new(), value });
    Ok(vec![
        (format!("clusters/{cluster}/secrets.lock.yaml"), lock.to_text().into_bytes()),
        (secret_path(cluster.as_str(), name, 1), sealed),
    ])
}

fn anchor(clone: &Clone, files: &[(String, Vec<u8>)], ident: &Ident, signer: &dyn Signer) -> Result<Oid> {
    let edits: Vec<TreeEdit> =
        files.iter().map(|(path, bytes)| TreeEdit::write(path.clone(), bytes.clone())).collect();
    let tree = clone.repo.write_tree(None, &edits)?;
    let new = NewCommit {
        tree: tree.id(),
        parents: Vec::new(),
        author: ident.clone(),
        committer: ident.clone(),
        message: "Begin: the cluster, its machines and who may change them\n",
    };
    Ok(clone.repo.write_commit(&new, Some(signer))?)
}

fn genesis(
    clone: &Clone,
    repository: &str,
    anchor: Oid,
    governance: &Governance,
    now: Timestamp,
    root: KeySigner,
) -> Result<Oid> {
    let installation = Installation {
        format: 1,
        repository: repository.to_owned(),
        shard: SHARD.to_owned(),
        epoch: hex(&random::<16>()?),
        mode: InstallationMode::Normal,
        sequence: 1,
        owner: None,
        seen: Seen { main: anchor.to_string(), act: 0 },
        governed: Governed { commit: anchor.to_string(), digest: governance.digest.clone(), turn: 0 },
    };
    let author = Ident {
        name: "Bronzeward root".to_owned(),
        email: "root".to_owned(),
        seconds: now.as_second(),
        offset: 0,
    };
    let committed = Transaction::genesis(installation, now).write(&clone.repo, &author, &root)?;
    Ok(committed.commit)
}

fn push(clone: &Clone, anchor: Oid, genesis: Oid) -> Result<()> {
    let main = RefUpdate { name: format!("refs/heads/{MAIN}"), expected: None, new: anchor };
    let state = RefUpdate { name: branch(SHARD), expected: None, new: genesis };
    if clone.git.config("remote.bronzeward-state.url")?.is_some() {
        clone.store().remote.push(&clone.repo, &[state])?;
        clone.git.push(&clone.repo, &[main])?;
    } else {
        clone.git.push(&clone.repo, &[main, state])?;
    }
    Ok(())
}

fn repository_settings(clone: &Clone, args: &Init) -> Result<RepositorySettings> {
    let origin = clone.git.config("remote.origin.url")?;
    let url = args
        .url
        .clone()
        .or(origin)
        .ok_or_else(|| refuse("The clone has no remote `origin`: name one with --url"))?;
    let url = if Path::new(&url).is_absolute() { format!("file://{url}") } else { url };
    Ok(RepositorySettings {
        url,
        branch: MAIN.to_owned(),
        poll: bronzeward_intent::Span::from_secs(60),
        ca_file: None,
        user: None,
        password_file: None,
        ssh_command: None,
    })
}

fn person_recipient(clone: &Clone, args: &Init, signer: &dyn Signer) -> Result<String> {
    if let Some(recipient) = &args.recipient {
        return Ok(recipient.clone());
    }
    let line = public_line_of(signer)?;
    if line.starts_with("ssh-ed25519 ") && clone.signing_key_file()?.is_some() {
        return Ok(line);
    }
    Err(refuse(
        "Your signing key cannot decrypt secrets (it is no ssh-ed25519 file): name an age recipient with --recipient age1…",
    ))
}

fn write_out(out: &Path, reconciler: &PrivateKey, root: &PrivateKey) -> Result<()> {
    for (name, key) in [("reconciler_ed25519", reconciler), ("root_ed25519", root)] {
        write_secret(&out.join(name), key.to_openssh(LineEnding::LF)?.as_bytes())?;
        write_secret(
            &out.join(format!("{name}.pub")),
            format!("{}\n", key.public_key().to_openssh()?).as_bytes(),
        )?;
    }
    Ok(())
}

fn write_secret(path: &Path, bytes: &[u8]) -> Result<()> {
    let open = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut file = open.with_context(|| format!("Cannot make `{}`", path.display()))?;
    file.write_all(bytes).with_context(|| format!("Cannot write `{}`", path.display()))
}

/// The editor's schema line above a file.
fn with_schema(name: &str, text: &str) -> Vec<u8> {
    format!("# yaml-language-server: $schema=https://bronzeward.dev/schema/{name}.json\n{text}").into_bytes()
}

fn new_key(comment: &str) -> Result<PrivateKey> {
    let pair = ssh_key::private::Ed25519Keypair::from_seed(&random()?);
    Ok(PrivateKey::new(pair.into(), comment)?)
}

fn public_line(key: &PrivateKey) -> Result<String> {
    two_fields(&key.public_key().to_openssh()?)
}

fn public_line_of(signer: &dyn Signer) -> Result<String> {
    two_fields(&signer.public_key().to_openssh()?)
}

fn two_fields(line: &str) -> Result<String> {
    Ok(line.split_ascii_whitespace().take(2).collect::<Vec<_>>().join(" "))
}

fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|err| anyhow::anyhow!("The system gives no random bytes: {err}"))?;
    Ok(bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A version 4 UUID from random bytes.
fn uuid(mut bytes: [u8; 16]) -> String {
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let text = hex(&bytes);
    [&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]].join("-")
}
