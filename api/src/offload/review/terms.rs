//! Terms of required node affinity: those of a Pod, and what a NamespaceOffloading adds to them.

use k8s_openapi::api::core::v1::{NodeSelectorRequirement, NodeSelectorTerm};
use serde_json::{Map, Value, json};

use super::{Denial, TERMS_MAX};
use crate::offload::{
    label,
    namespace::{NamespaceOffloadingSpec, PodOffloadingStrategy},
    selector,
};

const EXPRESSIONS: &str = "matchExpressions";
const FIELDS: &str = "matchFields";

/// The terms that a Pod has. None at all, and an empty list of them, require nothing.
pub(super) struct Required<'a> {
    all: &'a [Value],
    /// Those that are not empty. An empty one matches nothing.
    meant: Vec<Term<'a>>,
}

struct Term<'a> {
    raw: &'a Map<String, Value>,
    expressions: &'a [Value],
    fields: &'a [Value],
}

impl<'a> Required<'a> {
    /// Reads a list of terms; nothing is no list.
    pub(super) fn of(terms: &'a Value) -> Result<Self, Denial> {
        let all = list(terms, "nodeSelectorTerms")?;
        let read = all.iter().map(Term::of).collect::<Result<Vec<_>, _>>()?;
        let meant = read.into_iter().filter(|term| !(term.expressions.is_empty() && term.fields.is_empty()));
        Ok(Self { all, meant: meant.collect() })
    }

    /// The terms that the Pod shall have; `None` if that is what it has.
    ///
    /// Each of its own with each that is imposed. One that already has all of an imposed one stays alone: it requires enough.
    pub(super) fn with(&self, imposed: &[Imposed]) -> Result<Option<Vec<Value>>, Denial> {
        let has_enough = |term: &Term<'_>| imposed.iter().any(|imposed| term.has(imposed));
        // Where all its terms are empty it matches nothing, which is also enough.
        if !self.all.is_empty() && self.meant.iter().all(has_enough) {
            return Ok(None);
        }
        let made = |term: &Term<'_>| if has_enough(term) { 1 } else { imposed.len() };
        let product = match self.all {
            [] => imposed.len(),
            _ => self.meant.iter().map(made).sum(),
        };
        if product > TERMS_MAX {
            return Err(Denial::TooManyTerms { pod: self.all.len(), offloading: imposed.len(), product });
        }
        let terms: Vec<_> = match self.all {
            [] => imposed.iter().map(|imposed| Value::Object(imposed.onto(&Map::new()))).collect(),
            _ => self.meant.iter().flat_map(|term| term.with(imposed)).collect(),
        };
        // The API server wants one term at least. An empty one matches nothing.
        Ok(Some(if terms.is_empty() { vec![json!({})] } else { terms }))
    }
}

impl<'a> Term<'a> {
    fn of(term: &'a Value) -> Result<Self, Denial> {
        let raw =
            term.as_object().ok_or_else(|| Denial::NotAPod("a nodeSelectorTerm is no object".into()))?;
        let requirements = |field| list(raw.get(field).unwrap_or(&Value::Null), field);
        Ok(Self { raw, expressions: requirements(EXPRESSIONS)?, fields: requirements(FIELDS)? })
    }

    fn has(&self, imposed: &Imposed) -> bool {
        let has = |have: &[Value], all: &[Value]| all.iter().all(|requirement| have.contains(requirement));
        has(self.expressions, &imposed.expressions) && has(self.fields, &imposed.fields)
    }

    fn with(&self, imposed: &[Imposed]) -> Vec<Value> {
        if imposed.iter().any(|imposed| self.has(imposed)) {
            return vec![Value::Object(self.raw.clone())];
        }
        imposed.iter().map(|imposed| Value::Object(imposed.onto(self.raw))).collect()
    }
}

/// The list that a field has; nothing is an empty one.
fn list<'a>(value: &'a Value, field: &str) -> Result<&'a [Value], Denial> {
    match value {
        Value::Null => Ok(&[]),
        Value::Array(list) => Ok(list),
        _ => Err(Denial::NotAPod(format!("{field} is no list"))),
    }
}

/// A term that the NamespaceOffloading wants.
pub(super) struct Imposed {
    expressions: Vec<Value>,
    fields: Vec<Value>,
}

impl Imposed {
    fn of(term: &NodeSelectorTerm) -> Self {
        let requirements = |all: &[NodeSelectorRequirement]| all.iter().map(requirement).collect();
        Self {
            expressions: requirements(selector::expressions(term)),
            fields: requirements(selector::fields(term)),
        }
    }

    /// A Node that is none of other clusters.
    pub(super) fn at_home() -> Self {
        Self::type_("NotIn")
    }

    fn type_(operator: &str) -> Self {
        let expression = json!({"key": label::TYPE, "operator": operator, "values": [label::VIRTUAL_NODE]});
        Self { expressions: vec![expression], fields: Vec::new() }
    }

    fn and(mut self, other: Self) -> Self {
        self.expressions.extend(other.expressions);
        self.fields.extend(other.fields);
        self
    }

    /// The term with all that this one requires besides.
    fn onto(&self, term: &Map<String, Value>) -> Map<String, Value> {
        let mut term = term.clone();
        for (field, more) in [(EXPRESSIONS, &self.expressions), (FIELDS, &self.fields)] {
            if more.is_empty() {
                continue;
            }
            match term.entry(field).or_insert(Value::Null) {
                Value::Array(have) => have.extend(more.iter().cloned()),
                none => *none = Value::Array(more.clone()),
            }
        }
        term
    }
}

fn requirement(requirement: &NodeSelectorRequirement) -> Value {
    let NodeSelectorRequirement { key, operator, values } = requirement;
    match values.as_deref().unwrap_or_default() {
        [] => json!({"key": key, "operator": operator}),
        values => json!({"key": key, "operator": operator, "values": values}),
    }
}

/// The terms of which a node has to match one; `None` if every node will do, and an empty list if none does.
pub(super) fn imposed(offloading: &NamespaceOffloadingSpec) -> Option<Vec<Imposed>> {
    let terms = offloading.terms();
    let selected = || terms.iter().filter(|term| !selector::is_empty(term)).map(Imposed::of);
    match offloading.pod_offloading_strategy {
        PodOffloadingStrategy::Local => None,
        PodOffloadingStrategy::Remote if terms.is_empty() => Some(vec![Imposed::type_("In")]),
        PodOffloadingStrategy::Remote => {
            Some(selected().map(|term| term.and(Imposed::type_("In"))).collect())
        }
        PodOffloadingStrategy::LocalAndRemote if terms.is_empty() => None,
        PodOffloadingStrategy::LocalAndRemote => Some(selected().chain([Imposed::at_home()]).collect()),
    }
}
