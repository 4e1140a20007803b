//! The JSON Schemas under `schema/` are those of the types that read the files.
//!
//! With `BRONZEWARD_WRITE_SCHEMAS` set they are written instead of compared: `cargo xtask schemas` does that.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::fs;
use std::path::PathBuf;

use bronzeward_intent::{
    Assignment, Base, Cluster, FragmentHeader, Machine, Profile, Repository, SecretsLock,
};
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value};

fn all() -> [(&'static str, Value); 8] {
    [
        schema::<Repository>("repository", "Repository"),
        schema::<Cluster>("cluster", "Cluster"),
        schema::<Machine>("machine", "Machine"),
        schema::<Assignment>("assignment", "Assignment"),
        schema::<Profile>("profile", "Profile"),
        schema::<FragmentHeader>("fragment", "Fragment"),
        schema::<Base>("base", "Base"),
        schema::<SecretsLock>("secrets-lock", "SecretsLock"),
    ]
}

/// One schema, with its id and title in front.
fn schema<T: JsonSchema>(name: &'static str, title: &str) -> (&'static str, Value) {
    let made = SchemaGenerator::default().into_root_schema_for::<T>().to_value();
    let mut out = Map::new();
    out.insert("$schema".to_owned(), made["$schema"].clone());
    out.insert("$id".to_owned(), format!("https://bronzeward.dev/schema/v1alpha1/{name}.json").into());
    out.insert("title".to_owned(), title.into());
    let rest = made.as_object().into_iter().flatten().filter(|(key, _)| *key != "title");
    out.extend(rest.map(|(key, value)| (key.clone(), value.clone())));
    (name, Value::Object(out))
}

#[test]
fn the_committed_schemas_are_those_of_the_types() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../schema");
    let write = std::env::var_os("BRONZEWARD_WRITE_SCHEMAS").is_some();
    let mut stale = Vec::new();
    for (name, schema) in all() {
        let (path, text) = (folder.join(format!("{name}.json")), format!("{schema:#}\n"));
        if write {
            fs::write(&path, &text).unwrap();
        }
        if fs::read_to_string(&path).is_ok_and(|found| found == text) {
            continue;
        }
        stale.push(format!("schema/{name}.json"));
    }
    assert!(stale.is_empty(), "run `cargo xtask schemas` and commit {}", stale.join(", "));
}

#[test]
fn every_schema_names_itself_and_refuses_unknown_keys() {
    for (name, schema) in all() {
        let id = schema["$id"].as_str().unwrap();
        assert!(id.ends_with(&format!("/{name}.json")), "{id}");
        assert_eq!(schema["additionalProperties"], false, "{name}");
        let required = schema["required"].as_array().unwrap();
        assert!(required.contains(&"apiVersion".into()) && required.contains(&"kind".into()), "{name}");
        let reference = schema["properties"]["kind"]["$ref"].as_str().unwrap();
        let kind = schema.pointer(reference.trim_start_matches('#')).unwrap().to_string();
        assert!(kind.contains(&schema["title"].to_string()), "{name}: {kind}");
    }
}
