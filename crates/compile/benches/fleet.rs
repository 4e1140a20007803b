//! Whole fleets: reading a tree from memory, composing, encoding and digesting every machine. The cost must grow with
//! the machines and not faster.

#![allow(clippy::expect_used, reason = "a bench fails by panicking")]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bronzeward_compile::plan::Target;
use bronzeward_compile::view::{AppliedView, MachineView, StateView};
use bronzeward_compile::{Planner, compose_all, compose_each};
use bronzeward_intent::{Files, Intent, Name};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

fn files(machines: usize) -> Files {
    let all = bronzeward_fleet::repository(machines);
    Files::from_map(all.into_iter().map(|(path, text)| (path, text.into_bytes())).collect())
}

fn fleet(c: &mut Criterion) {
    let mut group = c.benchmark_group("compose");
    for machines in [10, 100, 1000, 10_000] {
        let files = files(machines);
        group.throughput(Throughput::Elements(machines as u64));
        group.sample_size(if machines > 1000 { 10 } else { 50 });
        group.bench_with_input(BenchmarkId::from_parameter(machines), &files, |b, files| {
            b.iter(|| {
                let intent = Intent::load(black_box(files)).expect("it loads");
                let (name, cluster) = intent.clusters.iter().next().expect("there is one");
                let all: Vec<_> = cluster.assignments.keys().map(|machine| (name, machine)).collect();
                let bytes = AtomicUsize::new(0);
                compose_each(&intent, &all, false, &|_, _, composed| {
                    bytes.fetch_add(composed.expect("it composes").bytes.len(), Ordering::Relaxed);
                });
                bytes.into_inner()
            });
        });
    }
    group.finish();
}

/// What runs everywhere is what this tree composes.
fn applied(intent: &Intent) -> StateView {
    let all: Vec<_> = intent.assigned().collect();
    let composed = compose_all(intent, &all, |composed| (composed.references_digest(), composed.digest));
    let applied = |(cluster, machine): (Name, Name), (references, digest): (String, String)| {
        let of_cluster = &intent.clusters[&cluster];
        let file = &of_cluster.machines[&machine];
        let applied = AppliedView {
            revision: 1,
            composed: Some(digest),
            references,
            meaning: "hmac-sha256:0".to_owned(),
            commit: "0".to_owned(),
            base_only: false,
            target: Target {
                endpoint: file.endpoint.full(),
                platform: file.platform.as_str().to_owned(),
                role: file.role.as_str().to_owned(),
                contract: of_cluster.cluster.contract.clone(),
            },
            identity: file.identity.clone(),
        };
        let view = MachineView { applied: Some(applied), ..MachineView::default() };
        ((cluster.to_string(), machine.to_string()), view)
    };
    let machines = composed.into_iter().map(|(name, digests)| applied(name, digests.expect("it composes")));
    StateView {
        governed: intent.governance.digest.clone(),
        machines: machines.collect(),
        ..StateView::default()
    }
}

/// Planning over what is applied: nothing changed, and a fragment that every machine selects.
fn plan(c: &mut Criterion) {
    let mut group = c.benchmark_group("plan 1000");
    group.sample_size(20);
    let same = bronzeward_fleet::repository(1000);
    let mut other = same.clone();
    for (path, text) in &mut other {
        if path.starts_with("fragments/") && path.contains("sysctls") {
            *text = text.replace("65535", "32768");
        }
    }
    let load = |all: BTreeMap<String, String>| {
        let files = all.into_iter().map(|(path, text)| (path, text.into_bytes())).collect();
        Rc::new(Intent::load(&Files::from_map(files)).expect("it loads"))
    };
    let (same, other) = (load(same), load(other));
    let view = applied(&same);
    for (name, intent, entries) in [("unchanged", &same, 0), ("a shared fragment", &other, 1000)] {
        group.bench_function(name, |b| {
            let at = |_: &str| Ok(Rc::clone(&same));
            b.iter(|| {
                let planned = Planner { intent, view: &view, at: &at }.plan();
                assert_eq!((planned.plan.entries.len(), planned.findings.has_errors()), (entries, false));
            });
        });
    }
    group.finish();
}

criterion_group!(benches, fleet, plan);
criterion_main!(benches);
