//! People at work: drafts, merges, approvals, acts, imports.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use bronzeward_compile::plan::Plan;
use bronzeward_compile::planner::Planner;
use bronzeward_git::merge::Merged;
use bronzeward_git::sign::Signer;
use bronzeward_git::{Ident, NewCommit, Oid, TreeEdit};
use bronzeward_intent::{Files, Findings, Intent};
use bronzeward_secrets::Label;
use bronzeward_secrets::ingest::{Ingest, base_file, ingest};
use bronzeward_state::approval::{Basis, NAMESPACE, Place, Statement};
use bronzeward_state::transaction::write_act;
use bronzeward_state::{Act, Scope, Snapshot};
use jiff::SignedDuration;

use super::{Approved, MAIN, Merge, REPOSITORY, STATE, Saying, Who, World, assignment};

impl World {
    pub fn ident(&self, who: &Who) -> Ident {
        let name = who.email.split('@').next().unwrap().to_owned();
        Ident { name, email: who.email.clone(), seconds: self.now().as_second(), offset: 0 }
    }

    /// Writes a commit; `None` leaves it unsigned, by a forge.
    pub fn write(
        &self,
        base: Option<Oid>,
        edits: &[TreeEdit],
        message: &str,
        who: Option<&Who>,
        parents: &[Oid],
    ) -> Oid {
        let tree = base.map(|base| self.repo.commit(base).unwrap().tree);
        let tree = self.repo.write_tree(tree, edits).unwrap();
        self.write_tree(tree.id(), message, who, parents)
    }

    pub fn write_tree(&self, tree: Oid, message: &str, who: Option<&Who>, parents: &[Oid]) -> Oid {
        let forge = Ident {
            name: "forge".into(),
            email: "forge@example.org".into(),
            seconds: self.now().as_second(),
            offset: 0,
        };
        let ident = who.map_or(forge, |who| self.ident(who));
        let new =
            NewCommit { tree, parents: parents.to_vec(), author: ident.clone(), committer: ident, message };
        self.repo.write_commit(&new, who.map(|who| &who.signer as &dyn Signer)).unwrap()
    }

    pub fn main(&self) -> Oid {
        self.repo.read_ref(MAIN).unwrap().unwrap()
    }

    pub fn push_main(&self, commit: Oid) {
        self.repo.force_ref(MAIN, commit).unwrap();
    }

    /// A draft commit on top of main, signed by its author.
    pub fn draft(&self, who: &Who, edits: &[TreeEdit]) -> Oid {
        let main = self.main();
        self.write(Some(main), edits, "A change\n", Some(who), &[main])
    }

    /// A commit put onto main directly, without any approval.
    pub fn publish(&self, who: Option<&Who>, edits: &[TreeEdit]) -> Oid {
        let main = self.main();
        let commit = self.write(Some(main), edits, "A change\n", who, &[main]);
        self.push_main(commit);
        commit
    }

    pub fn merged_tree(&self, head: Oid) -> Oid {
        match self.repo.merge(self.main(), head).unwrap() {
            Merged::Clean(tree) => tree,
            Merged::Conflict(paths) => panic!("conflict in {paths:?}"),
        }
    }

    pub fn intent_of_tree(&self, tree: Oid) -> Result<Intent, Findings> {
        Intent::load(&Files::from_tree(&self.repo.tree(tree)).unwrap())
    }

    pub fn intent_of(&self, commit: Oid) -> Result<Intent, Findings> {
        self.intent_of_tree(self.repo.commit(commit).unwrap().tree)
    }

    pub fn state(&self) -> Snapshot {
        let tip = self.repo.read_ref(STATE).unwrap().unwrap();
        Snapshot::read(&self.repo, tip).unwrap()
    }

    /// The plan of a tree against the state, as any person computes it.
    pub fn plan_tree(&self, tree: Oid) -> Plan {
        self.planned(tree).plan
    }

    pub fn planned(&self, tree: Oid) -> bronzeward_compile::planner::Planned {
        let intent = self.intent_of_tree(tree).unwrap_or_else(|findings| panic!("{findings}"));
        self.with_planner(&intent, |planner| planner.plan())
    }

    pub fn with_planner<T>(&self, intent: &Intent, ask: impl FnOnce(&Planner<'_>) -> T) -> T {
        let view = self.state().view();
        let at = |commit: &str| -> Result<Rc<Intent>, String> {
            let commit: Oid = commit.parse().map_err(|_| "no commit".to_owned())?;
            self.intent_of(commit).map(Rc::new).map_err(|findings| findings.to_string())
        };
        ask(&Planner { intent, view: &view, at: &at })
    }

    pub fn revert_plan(&self, machine: &str) -> Plan {
        let intent = self.intent_of(self.main()).unwrap();
        self.with_planner(&intent, |planner| planner.revert_plan("home", machine))
            .unwrap_or_else(|f| panic!("{f}"))
    }

    /// Signs an approval of a plan.
    pub fn approve(&self, who: &Who, plan: Plan, head: Oid) -> Approved {
        self.say(who, plan, head, &Saying::default())
    }

    pub fn say(&self, who: &Who, plan: Plan, head: Oid, saying: &Saying) -> Approved {
        let expires = self.now() + SignedDuration::try_from(saying.expires).unwrap();
        let statement = Statement {
            plan: saying.plan_digest.clone().unwrap_or_else(|| plan.digest()),
            basis: Basis {
                head: head.to_string(),
                main: self.main().to_string(),
                state: self.state().commit.to_string(),
            },
            expires,
        };
        let place = Place { repository: &saying.repository, shard: &saying.shard, epoch: &saying.epoch };
        let name = saying.name.clone().unwrap_or_else(|| who.email.clone());
        let bytes = statement.signed_bytes(place, &name);
        let armoured = who.signer.sign(NAMESPACE, &bytes).unwrap();
        let trailers = statement.to_trailers(&name, &armoured).unwrap();
        Approved { trailers, id: bronzeward_state::approval::id_of(&bytes), plan, head }
    }

    /// Puts an approval on its branch.
    pub fn push_approval(&self, who: &Who, approved: &Approved) -> Oid {
        let edits = [TreeEdit::write("plan.json", approved.plan.to_bytes())];
        let message = format!("Approve\n\n{}", approved.trailers);
        let commit = self.write(None, &edits, &message, Some(who), &[approved.head]);
        self.repo.force_ref(&format!("refs/heads/bronzeward/approvals/{}", approved.id), commit).unwrap();
        commit
    }

    /// Approves a branch and merges it, the way it was chosen.
    pub fn merge(&self, who: &Who, head: Oid, how: Merge) -> Approved {
        let approved = self.approve(who, self.plan_tree(self.merged_tree(head)), head);
        self.merge_with(who, head, how, &approved);
        approved
    }

    pub fn merge_with(&self, who: &Who, head: Oid, how: Merge, approved: &Approved) -> Oid {
        let (main, tree) = (self.main(), self.merged_tree(head));
        self.push_approval(who, approved);
        let message = format!("Merge a change\n\n{}", approved.trailers);
        let commit = match how {
            Merge::Signed => self.write_tree(tree, &message, Some(who), &[main, head]),
            Merge::Button => self.write_tree(tree, "Merge a change\n", None, &[main, head]),
            Merge::Squash => self.write_tree(tree, "A change (#1)\n", None, &[main]),
        };
        self.push_main(commit);
        commit
    }

    /// Drafts by `ann`, approved and merged by her.
    pub fn change(&self, edits: &[TreeEdit]) -> Approved {
        self.merge(&self.ann, self.draft(&self.ann, edits), Merge::Signed)
    }

    /// Approves what main says now, on the approvals branch alone.
    pub fn approve_main(&self, who: &Who) -> Approved {
        let main = self.main();
        let approved = self.approve(who, self.plan_tree(self.repo.commit(main).unwrap().tree), main);
        self.push_approval(who, &approved);
        approved
    }

    /// Asks for a revert, and approves it.
    pub fn revert(&self, who: &Who, machine: &str) -> Approved {
        let approved = self.approve(who, self.revert_plan(machine), self.main());
        self.push_approval(who, &approved);
        approved
    }

    pub fn act(&self, who: &Who, act: &Act) {
        let committed =
            write_act(&self.repo, &self.state(), act, self.now(), &self.ident(who), &who.signer).unwrap();
        self.repo.set_ref(STATE, committed.commit, committed.parent).unwrap();
    }

    pub fn freeze(&self, who: &Who, scope: &str) {
        let scope: Scope = scope.parse().unwrap();
        self.act(who, &Act::Freeze { format: 1, scope, reason: "to see".into(), at: self.now() });
    }

    pub fn unfreeze(&self, who: &Who, scope: &str) {
        let scope: Scope = scope.parse().unwrap();
        self.act(who, &Act::Unfreeze { format: 1, scope, reason: "seen".into(), at: self.now() });
    }

    pub fn revoke(&self, who: &Who, approval: &str) {
        let act = Act::Revoke { format: 1, approval: approval.into(), reason: "no".into(), at: self.now() };
        self.act(who, &act);
    }

    pub fn deny(&self, who: &Who, key: &str) {
        self.act(who, &Act::Deny { format: 1, key: key.into(), reason: "lost".into(), at: self.now() });
    }

    /// The base of a machine, from what runs on its node; `drift` names the record that it adopts.
    pub fn import(&self, name: &str, endpoint: &str, drift: Option<u64>) -> Vec<TreeEdit> {
        self.import_as(name, name, endpoint, drift)
    }

    pub fn import_as(&self, base: &str, machine: &str, endpoint: &str, drift: Option<u64>) -> Vec<TreeEdit> {
        let bytes = self.nodes.bytes(endpoint);
        let value = |text: &str| self.key.digest(Label::Value, REPOSITORY, "home", "string", text.as_bytes());
        let stored: BTreeMap<String, (String, u64)> =
            BTreeMap::from([(value("aaaaaa.token-of-machines"), ("machine/token".to_owned(), 1))]);
        let ingested = ingest(&Ingest {
            tables: &talos_config::Tables::v1_13(),
            bytes: &bytes,
            marks: &[],
            clears: &[],
            mark_undecided: false,
            known_clear: &[],
            digest: &value,
            stored: &stored,
            taken: &BTreeSet::new(),
        });
        let ingested = ingested.unwrap_or_else(|err| panic!("{err}"));
        assert!(ingested.new.is_empty(), "every secret of the node is stored already");
        let digest = |label, bytes: &[u8]| self.key.digest(label, REPOSITORY, "home", "", bytes);
        let header = format!(
            "apiVersion: bronzeward.dev/v1alpha1\nkind: Base\nname: {base}\nimported: {{machine: {machine}, drift: {}, \
             bytes: \"{}\", meaning: \"{}\"}}\n",
            drift.map_or("null".to_owned(), |drift| drift.to_string()),
            digest(Label::Bytes, &bytes),
            digest(Label::Meaning, &ingested.canonical)
        );
        let header: bronzeward_intent::Base =
            bronzeward_intent::fragment::read_own("base", header.as_bytes()).unwrap();
        let rest = if base == machine { String::new() } else { format!("base: {base}\n") };
        vec![
            TreeEdit::write(
                format!("clusters/home/bases/{base}.yaml"),
                base_file(&header, &ingested.sanitised),
            ),
            TreeEdit::write(format!("clusters/home/assignments/{machine}.yaml"), assignment(machine, &rest)),
        ]
    }

    /// The edits of a fragment in the `override` layer of `w1`.
    pub fn fragment(&self, name: &str, patch: &str) -> Vec<TreeEdit> {
        self.fragments("w1", &[(name, patch)])
    }

    /// The machine's assignment selects exactly these fragments of its own.
    pub fn fragments(&self, machine: &str, list: &[(&str, &str)]) -> Vec<TreeEdit> {
        let names: Vec<&str> = list.iter().map(|(name, _)| *name).collect();
        let rest = if names.is_empty() {
            String::new()
        } else {
            format!("fragments: {{override: [{}]}}\n", names.join(", "))
        };
        let mut edits = vec![TreeEdit::write(
            format!("clusters/home/assignments/{machine}.yaml"),
            assignment(machine, &rest),
        )];
        for (name, patch) in list {
            edits.push(TreeEdit::write(format!("clusters/home/fragments/override/{name}.yaml"), *patch));
        }
        edits
    }
}
