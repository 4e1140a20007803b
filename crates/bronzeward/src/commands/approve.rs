//! `approve` and `revert`: signing a plan, and putting the approval where the reconciler finds it.

use anyhow::Result;
use bronzeward_compile::plan::Plan;
use bronzeward_compile::planner::Planner;
use bronzeward_git::sign::Signer;
use bronzeward_git::{NewCommit, Oid, RefUpdate, Remote, TreeEdit};
use bronzeward_intent::ActorRole;
use bronzeward_state::approval::{Basis, NAMESPACE, Place, Statement, id_of};
use serde_json::json;

use crate::cli::{Approve, Cli, Revert};
use crate::commands::{from_now, now};
use crate::context::{Clone, MAIN, find_machine};
use crate::exit::{Exit, refuse};
use crate::output::{self, Format};
use crate::planning::{self, Stand};

/// A signed plan.
struct Signed {
    id: String,
    trailers: String,
    plan: Plan,
}

/// `approve`.
pub fn approve(cli: &Cli, args: &Approve) -> Result<Exit> {
    let clone = Clone::open(cli)?;
    let tips = clone.fetch()?;
    if args.branch == MAIN && args.merge {
        return Err(refuse("main is there already: `bronzeward approve main --only`"));
    }
    let stand = planning::stand(&clone, &tips, &args.branch)?;
    let shown = planning::show(&clone, &stand)?;
    output::complain(planning::text(&stand, &shown).trim_end());
    if shown.planned.findings.has_errors() {
        return Err(refuse("The plan holds findings that refuse: correct them first"));
    }
    let plan = shown.planned.plan;
    if plan.entries.is_empty() && !args.merge {
        return Err(refuse("Nothing would be done: there is nothing to approve"));
    }
    if !confirmed(args.yes, "Approve this plan?")? {
        return Ok(Exit::NotConfirmed);
    }
    let signer = clone.signer()?;
    if plan.entries.is_empty() {
        // nothing to approve: the merge alone, and main holds what it held
        let message = format!("Merge `{}`\n\nNo machine changes.\n", stand.branch);
        let merge = merge_commit(&clone, &stand, &message, &signer)?;
        push(&clone, &[main_update(&stand, merge)])?;
        after_merge(&clone)?;
        output::line(&format!("merged {} ({merge}); no machine changes", stand.branch));
        return Ok(Exit::Fine);
    }
    let basis = Basis {
        head: stand.head.to_string(),
        main: stand.main.to_string(),
        state: stand.state.commit.to_string(),
    };
    let signed = sign(&clone, &stand.state, plan, basis, &args.expires, &signer)?;
    if args.print {
        output::bytes(signed.trailers.as_bytes());
        return Ok(Exit::Fine);
    }
    let approval = approval_commit(&clone, &signed, stand.head, &signer)?;
    let approval_update = RefUpdate { name: Clone::approval_ref(&signed.id), expected: None, new: approval };
    if args.only {
        push(&clone, &[approval_update])?;
    } else {
        let message = format!("Merge `{}`\n\n{}", stand.branch, signed.trailers);
        let merge = merge_commit(&clone, &stand, &message, &signer)?;
        push(&clone, &[main_update(&stand, merge), approval_update])?;
        after_merge(&clone)?;
    }
    say(cli, &signed, &stand.branch);
    Ok(Exit::Fine)
}

/// `revert`.
pub fn revert(cli: &Cli, args: &Revert) -> Result<Exit> {
    let clone = Clone::open(cli)?;
    let tips = clone.fetch()?;
    let state = clone.snapshot()?;
    let intent = clone.intent(tips.main)?;
    let (cluster, machine) = find_machine(&intent, &args.machine)?;
    let view = state.view();
    let at = |commit: &str| clone.intent_at(commit);
    let planner = Planner { intent: &intent, view: &view, at: &at };
    let plan = planner
        .revert_plan(cluster.as_str(), machine.as_str())
        .map_err(|findings| refuse(findings.to_string()))?;
    output::complain(planning::entries_text(&plan, &Default::default()).trim_end());
    if !confirmed(args.yes, "Send what is Applied over this drift?")? {
        return Ok(Exit::NotConfirmed);
    }
    let signer = clone.signer()?;
    let basis =
        Basis { head: tips.main.to_string(), main: tips.main.to_string(), state: state.commit.to_string() };
    let signed = sign(&clone, &state, plan, basis, &args.expires, &signer)?;
    let approval = approval_commit(&clone, &signed, tips.main, &signer)?;
    push(&clone, &[RefUpdate { name: Clone::approval_ref(&signed.id), expected: None, new: approval }])?;
    say(cli, &signed, &format!("a revert of {machine}"));
    Ok(Exit::Fine)
}

fn say(cli: &Cli, signed: &Signed, what: &str) {
    match cli.format {
        Format::Text => output::line(&format!("approved {what}: approval {}", signed.id)),
        Format::Json => output::json(&json!({"approval": signed.id, "plan": signed.plan.digest()})),
    }
}

fn confirmed(yes: bool, question: &str) -> Result<bool> {
    if yes {
        return Ok(true);
    }
    match output::ask(question) {
        Some(answer) => Ok(answer),
        None => Err(refuse("Nobody can be asked here: look at the plan, then say --yes")),
    }
}

fn sign(
    clone: &Clone,
    state: &bronzeward_state::Snapshot,
    plan: Plan,
    basis: Basis,
    expires: &str,
    signer: &dyn Signer,
) -> Result<Signed> {
    let installation = &state.installation;
    let governance = clone.governance(&installation.governed.commit)?;
    let who = clone.principal(&governance, signer)?;
    if !governance.may(&who, ActorRole::Approver) {
        return Err(refuse(format!("`{who}` does not hold the role `approver` in the governed policy")));
    }
    let statement = Statement { plan: plan.digest(), basis, expires: from_now(expires)? };
    let place = Place {
        repository: &installation.repository,
        shard: &installation.shard,
        epoch: &installation.epoch,
    };
    let bytes = statement.signed_bytes(place, &who);
    let armoured = signer.sign(NAMESPACE, &bytes)?;
    let trailers = statement.to_trailers(&who, &armoured)?;
    Ok(Signed { id: id_of(&bytes), trailers, plan })
}

/// A signed commit that holds the plan, so that a squash does not lose it.
fn approval_commit(clone: &Clone, signed: &Signed, head: Oid, signer: &dyn Signer) -> Result<Oid> {
    let tree = clone.repo.write_tree(None, &[TreeEdit::write("plan.json", signed.plan.to_bytes())])?;
    let ident = clone.ident(now())?;
    let message = format!("Approval {}\n\n{}", signed.id, signed.trailers);
    let new = NewCommit {
        tree: tree.id(),
        parents: vec![head],
        author: ident.clone(),
        committer: ident,
        message: &message,
    };
    Ok(clone.repo.write_commit(&new, Some(signer))?)
}

fn merge_commit(clone: &Clone, stand: &Stand, message: &str, signer: &dyn Signer) -> Result<Oid> {
    let ident = clone.ident(now())?;
    let new = NewCommit {
        tree: stand.tree,
        parents: vec![stand.main, stand.head],
        author: ident.clone(),
        committer: ident,
        message,
    };
    Ok(clone.repo.write_commit(&new, Some(signer))?)
}

fn main_update(stand: &Stand, merge: Oid) -> RefUpdate {
    RefUpdate { name: format!("refs/heads/{MAIN}"), expected: Some(stand.main), new: merge }
}

fn push(clone: &Clone, updates: &[RefUpdate]) -> Result<()> {
    match clone.git.push(&clone.repo, updates) {
        Ok(_) => Ok(()),
        Err(err) if err.lost_race() => {
            Err(refuse(format!("{err}: the plan is no longer what you saw, approve it again")))
        }
        Err(err) => Err(err.into()),
    }
}

/// Brings the local main to where the remote's is, when nothing stands in the way.
fn after_merge(clone: &Clone) -> Result<()> {
    let tips = clone.fetch()?;
    if clone.current_branch()?.as_deref() == Some(MAIN) {
        // a work tree with changes of its own stays as it is
        let _ = clone.git.run(&["merge", "--quiet", "--ff-only", "origin/main"]);
    } else if let Some(local) = clone.repo.read_ref(&format!("refs/heads/{MAIN}"))?
        && clone.repo.is_ancestor(local, tips.main)?
    {
        let (name, new, old) = (format!("refs/heads/{MAIN}"), tips.main.to_string(), local.to_string());
        clone.git.run(&["update-ref", "-m", "bronzeward approve", &name, &new, &old])?;
    }
    Ok(())
}
