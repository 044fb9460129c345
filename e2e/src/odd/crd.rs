//! CRDs as other releases have them: older ones lack fields, limits or versions, newer ones have more fields, versions or columns.

use serde_json::{Value, json};

use sim::random::Random;

/// What a CRD may become.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Age {
    /// Whatever was written keeps its meaning.
    Newer,
    Any,
}

const SCHEMA: &str = "openAPIV3Schema";
const KEEPS_ALL: &str = "x-kubernetes-preserve-unknown-fields";
const LIMITS: [&str; 9] = [
    "required",
    "enum",
    "pattern",
    "format",
    "maxLength",
    "maxItems",
    "maximum",
    "minimum",
    "x-kubernetes-validations",
];
const COLUMNS: [&str; 4] =
    [".metadata.name", ".spec", ".spec.nothing.like[0].it", ".status.conditions[*].type"];
const RELEASE: &str = "multicluster.x-k8s.io/release-version";
const RELEASES: [&str; 4] = ["v0.1.0", "v99.0.0", "v0.5.2-alpha", "later"];

/// Changes the CRD in one to three ways.
pub(super) fn change(random: &mut Random, age: Age, crd: &mut Value) {
    for _ in 0..=random.below(3) {
        let how = random.below(if age == Age::Newer { 5 } else { 7 });
        let Some(versions) = crd["spec"]["versions"].as_array_mut() else { return };
        let one = random.below(versions.len());
        let schema = &mut versions[one]["schema"][SCHEMA];
        match how {
            0 => {
                let later = later(&versions[one]);
                versions.push(later);
            }
            1 => {
                let column = json!({"name": "odd", "type": "string", "jsonPath": random.pick(&COLUMNS)});
                versions[one]["additionalPrinterColumns"] = json!([column]);
            }
            2 => loosen(random, schema),
            3 => {
                let field = json!({"type": random.pick(&["string", "integer", "boolean"])});
                fields(random, schema)["later"] = field;
            }
            4 => crd["metadata"]["labels"][RELEASE] = json!(random.pick(&RELEASES)),
            5 => {
                let fields = fields(random, schema);
                take_field(random, fields);
            }
            _ => versions[one]["served"] = json!(false),
        }
    }
}

/// Another version that is served beside this one.
fn later(version: &Value) -> Value {
    let mut later = version.clone();
    later["name"] = json!("v9");
    later["storage"] = json!(false);
    later
}

/// Takes a limit off a schema somewhere in this one, or all there are.
fn loosen(random: &mut Random, schema: &mut Value) {
    let path = descend(random, schema, |_| true);
    let Some(schema) = schema.pointer_mut(&path).and_then(Value::as_object_mut) else { return };
    let limits: Vec<_> = LIMITS.iter().filter(|limit| schema.contains_key(**limit)).collect();
    match limits.as_slice() {
        [] if !path.is_empty() => *schema = [(KEEPS_ALL.to_owned(), json!(true))].into_iter().collect(),
        [] => {}
        limits => drop(schema.remove(**random.pick(limits))),
    }
}

/// The fields of an object somewhere in the schema.
fn fields<'a>(random: &mut Random, schema: &'a mut Value) -> &'a mut Value {
    let path = descend(random, schema, |schema| schema["properties"].is_object());
    &mut schema.pointer_mut(&path).unwrap()["properties"]
}

fn take_field(random: &mut Random, fields: &mut Value) {
    let fields = fields.as_object_mut().unwrap();
    let names: Vec<_> = fields.keys().filter(|name| is_ours(name)).cloned().collect();
    if !names.is_empty() {
        fields.remove(random.pick(&names));
    }
}

/// Path of a schema in this one that `is` one.
fn descend(random: &mut Random, schema: &Value, is: impl Fn(&Value) -> bool) -> String {
    let (mut path, mut found) = (String::new(), String::new());
    loop {
        let here = schema.pointer(&path).unwrap();
        if is(here) {
            found.clone_from(&path);
        }
        let below = below(here);
        if below.is_empty() || (!path.is_empty() && random.one_in(4)) {
            return found;
        }
        let next: &String = random.pick(&below);
        path += next;
    }
}

/// Paths of the schemas that this one is made of.
fn below(schema: &Value) -> Vec<String> {
    let fields = schema["properties"].as_object().into_iter().flatten();
    let fields = fields.filter(|(name, _)| is_ours(name)).map(|(name, _)| {
        // As JSON pointers write it.
        format!("/properties/{}", name.replace('~', "~0").replace('/', "~1"))
    });
    let all = ["items", "additionalProperties"].into_iter().filter(|of| schema[of].is_object());
    fields.chain(all.map(|of| format!("/{of}"))).collect()
}

/// Every object has the others.
fn is_ours(field: &str) -> bool {
    !["apiVersion", "kind", "metadata"].contains(&field)
}

#[cfg(test)]
mod tests {
    use cli::objects::crds;

    use super::*;

    #[test]
    fn a_newer_crd_serves_every_version_and_an_older_one_may_not() {
        let crd = crds::member().into_iter().next().unwrap().body;
        let changed = |age| {
            let all = (0..200).map(|seed| {
                let mut changed = crd.clone();
                change(&mut Random::new(seed), age, &mut changed);
                assert_ne!(changed, crd, "seed {seed}");
                changed.to_string()
            });
            all.collect::<Vec<_>>()
        };
        let lacks_a_version = |crd: &String| crd.contains(r#""served":false"#);
        assert!(changed(Age::Any).iter().any(lacks_a_version));
        assert!(!changed(Age::Newer).iter().any(lacks_a_version));
    }
}
