//! JSON Schemas of the files that people write, from the types that read them.

use bronzeward_intent::{
    Assignment, Base, Cluster, FragmentHeader, Machine, Profile, Repository, SecretsLock,
};
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value};

use crate::Outcome;
use crate::outputs::{Mode, settle};

/// Writes or compares every schema.
pub fn run(mode: Mode) -> anyhow::Result<Outcome> {
    let files: Vec<_> = all().into_iter().map(|(name, schema)| (path(name), text(&schema))).collect();
    settle(mode, &files, "schemas")
}

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

fn path(name: &str) -> String {
    format!("schema/{name}.json")
}

/// One schema, with its id and title in front.
fn schema<T: JsonSchema>(name: &'static str, title: &str) -> (&'static str, Value) {
    let made = SchemaGenerator::default().into_root_schema_for::<T>().to_value();
    let mut out = Map::new();
    out.insert("$schema".to_owned(), made["$schema"].clone());
    out.insert("$id".to_owned(), format!("https://bronzeward.dev/schema/v1alpha1/{name}.json").into());
    out.insert("title".to_owned(), title.into());
    for (key, value) in made.as_object().into_iter().flatten() {
        if key != "title" {
            out.insert(key.clone(), value.clone());
        }
    }
    (name, Value::Object(out))
}

fn text(schema: &Value) -> Vec<u8> {
    format!("{schema:#}\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_names_itself_and_refuses_unknown_keys() {
        for (name, schema) in all() {
            let id = schema["$id"].as_str().unwrap();
            assert!(id.ends_with(&format!("/{name}.json")), "{id}");
            assert_eq!(schema["additionalProperties"], false, "{name}");
            assert_eq!(
                schema["properties"]["kind"]["$ref"].as_str().map(|r| r.ends_with("Kind")),
                Some(true)
            );
            let required = schema["required"].as_array().unwrap();
            assert!(required.contains(&"apiVersion".into()) && required.contains(&"kind".into()), "{name}");
        }
    }

    #[test]
    fn the_kind_is_the_title() {
        for (name, schema) in all() {
            let reference = schema["properties"]["kind"]["$ref"].as_str().unwrap();
            let kind = schema.pointer(reference.trim_start_matches('#')).unwrap().to_string();
            assert!(kind.contains(&schema["title"].to_string()), "{name}: {kind}");
        }
    }
}
