//! The table of codes. A code never changes its meaning, and is never used again.

use std::{fmt, str::FromStr};

use crate::step::Step;

/// Number of a finding: `FP501`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(pub u16);

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FP{:03}", self.0)
    }
}

/// `FP501`, `fp501` or `501`.
impl FromStr for Code {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.strip_prefix("FP").or_else(|| text.strip_prefix("fp")).unwrap_or(text);
        let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
        let code = number.parse().ok().filter(|_| is_number).map(Code).filter(|code| entry(*code).is_some());
        code.ok_or_else(|| {
            let all: Vec<_> = TABLE.iter().map(|entry| Code(entry.code).to_string()).collect();
            format!("there is no code {text:?}; the codes are {}", all.join(", "))
        })
    }
}

/// What is known of a code without looking at any cluster.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its number.
    pub code: u16,
    /// Title.
    pub title: &'static str,
    /// The step of `freeport why` that finds it. It depends on all steps before.
    pub step: Step,
    /// What leads to it, and what follows from it.
    pub cause: &'static str,
    /// A command to try, with words in braces for what is known only of a cluster.
    pub next: &'static str,
    /// Whether another look may help, because the daemons may still be at it.
    pub again: bool,
}

/// Everything that can be found, by code.
pub const TABLE: &[Entry] = &[
    Entry {
        code: 101,
        title: "a cluster is not a member",
        step: Step::Set,
        cause: "A cluster that exports or imports the Service has no ClusterSet in Namespace freeport-system, or has left its ClusterSet. \
                It exports and imports nothing.",
        next: "freeport join --clusterset {set} --cluster-id {id} --context {context} --leader-context {leader}",
        again: false,
    },
    Entry {
        code: 102,
        title: "the member of an exporting cluster does not run",
        step: Step::Set,
        cause: "freeport-member of an exporting cluster does not renew its Lease, or its Deployment has no replicas. New exports, changes and \
                endpoints of that cluster do not reach the others.",
        next: "kubectl --context {context} -n freeport-system scale deployment freeport-member --replicas 1",
        again: true,
    },
    Entry {
        code: 103,
        title: "the member of the importing cluster does not run",
        step: Step::Set,
        cause: "freeport-member of the importing cluster does not renew its Lease, or its Deployment has no replicas. Existing imports stay \
                as they are; new imports and changes do not arrive.",
        next: "kubectl --context {context} -n freeport-system scale deployment freeport-member --replicas 1",
        again: true,
    },
    Entry {
        code: 104,
        title: "the image of a member cannot be pulled",
        step: Step::Set,
        cause: "The container of freeport-member waits for an image that the registry does not serve to this cluster.",
        next: "kubectl --context {context} -n freeport-system describe pods -l app.kubernetes.io/name=freeport-member",
        again: true,
    },
    Entry {
        code: 105,
        title: "a member does not reach the leader",
        step: Step::Set,
        cause: "The API server of the leader gives a member no answer: its address is wrong, or the network drops the packets.",
        next: "kubectl --context {context} -n freeport-system get clusterset -o jsonpath='{.items[*].spec.leaders[0].server}'",
        again: true,
    },
    Entry {
        code: 106,
        title: "the leader's API server does not run",
        step: Step::Set,
        cause: "The address of the leader's API server refuses connections: nothing listens there.",
        next: "kubectl --context {leader} get --raw /readyz",
        again: true,
    },
    Entry {
        code: 107,
        title: "the leader refuses the token of a member",
        step: Step::Set,
        cause: "The token in the member's Secret was revoked or has expired, or its ServiceAccount in the leader's cluster was deleted.",
        next: "freeport join --clusterset {set} --cluster-id {id} --context {context} --leader-context {leader}",
        again: false,
    },
    Entry {
        code: 108,
        title: "a member does not trust the leader's certificate",
        step: Step::Set,
        cause: "The certificate of the leader's API server was signed by another authority than ca.crt of the member's Secret, has expired, or \
                is for another address.",
        next: "freeport join --clusterset {set} --cluster-id {id} --context {context} --leader-context {leader}",
        again: false,
    },
    Entry {
        code: 109,
        title: "a CustomResourceDefinition is missing",
        step: Step::Set,
        cause: "An API server does not serve a kind that the member needs: its CustomResourceDefinition was deleted.",
        next: "freeport init --clusterset {set} --cluster-id {leaderid} --context {leader} --only crds",
        again: false,
    },
    Entry {
        code: 110,
        title: "freeport-leader does not run",
        step: Step::Set,
        cause: "freeport-leader does not renew its Lease in the Common Area. New exports and withdrawals wait; endpoints are still updated.",
        next: "kubectl --context {leader} -n freeport-system scale deployment freeport-leader --replicas 1",
        again: true,
    },
    Entry {
        code: 111,
        title: "a member is not connected for another reason",
        step: Step::Set,
        cause: "Condition Ready of the member's ClusterSet is not True. Its message says why.",
        next: "freeport status --context {context}",
        again: true,
    },
    Entry {
        code: 201,
        title: "no cluster exports the Service",
        step: Step::Export,
        cause: "No cluster that was looked at has a ServiceExport of this Namespace and name.",
        next: "echo '{\"apiVersion\":\"multicluster.x-k8s.io/v1alpha1\",\"kind\":\"ServiceExport\",\"metadata\":{\"name\":\"{name}\",\"namespace\":\"{namespace}\"}}' | \
               kubectl --context {context} create -f -",
        again: false,
    },
    Entry {
        code: 202,
        title: "the ServiceExport has no Service",
        step: Step::Export,
        cause: "There is a ServiceExport, and no Service of the same name in its Namespace. Perhaps one of the two names is misspelt.",
        next: "kubectl --context {context} -n {namespace} get services,serviceexports",
        again: false,
    },
    Entry {
        code: 203,
        title: "the Service is of type ExternalName",
        step: Step::Export,
        cause: "A Service of type ExternalName is only another name and has no endpoints, so it cannot be exported. Clients in other clusters can use \
                the external name itself.",
        next: "kubectl --context {context} -n {namespace} delete serviceexport {name}",
        again: false,
    },
    Entry {
        code: 204,
        title: "the Namespace is excluded from exporting",
        step: Step::Export,
        cause: "An administrator set label multicluster.freeport.dev/export of the Namespace to false.",
        next: "kubectl --context {context} label namespace {namespace} multicluster.freeport.dev/export-",
        again: false,
    },
    Entry {
        code: 205,
        title: "the export is not valid",
        step: Step::Export,
        cause: "The member cannot export the Service as it is. Condition Valid of the ServiceExport says why.",
        next: "kubectl --context {context} -n {namespace} describe serviceexport {name}",
        again: false,
    },
    Entry {
        code: 301,
        title: "the leader does not accept the export",
        step: Step::Record,
        cause: "The Service breaks a limit or rule of the ClusterSet, for example more than 100 ports or more records than a member may have.",
        next: "kubectl --context {context} -n {namespace} describe serviceexport {name}",
        again: false,
    },
    Entry {
        code: 302,
        title: "the leader's API server refuses a record",
        step: Step::Record,
        cause: "A right, a policy, a quota or a webhook in the leader's cluster keeps the member from writing its records.",
        next: "freeport join --clusterset {set} --cluster-id {id} --context {context} --leader-context {leader}",
        again: true,
    },
    Entry {
        code: 303,
        title: "the export is not in the Common Area yet",
        step: Step::Record,
        cause: "The member has not written its record. After a change of the ServiceExport that takes a moment.",
        next: "kubectl --context {context} -n freeport-system logs deployment/freeport-member --tail 50",
        again: true,
    },
    Entry {
        code: 401,
        title: "exports have different ports",
        step: Step::Merge,
        cause: "Clusters export the Service with different ports. Where two ports have the same name or number, the port of the older export is \
                used, and no client reaches the other one.",
        next: "kubectl --context {context} -n {namespace} describe serviceexport {name}",
        again: false,
    },
    Entry {
        code: 402,
        title: "the Service is headless in some clusters only",
        step: Step::Merge,
        cause: "The oldest export decides whether the Service has an address of its own.",
        next: "kubectl --context {context} -n {namespace} describe serviceexport {name}",
        again: false,
    },
    Entry {
        code: 403,
        title: "exports differ in another property",
        step: Step::Merge,
        cause: "Session affinity, a traffic policy, IP families, exported labels or exported annotations differ. The oldest export decides.",
        next: "kubectl --context {context} -n {namespace} describe serviceexport {name}",
        again: false,
    },
    Entry {
        code: 404,
        title: "the leader has not merged the export yet",
        step: Step::Merge,
        cause: "The record is in the Common Area, and there is no ResourceImport with it. After an export that takes a moment.",
        next: "kubectl --context {leader} -n freeport-system logs deployment/freeport-leader --tail 50",
        again: true,
    },
    Entry {
        code: 501,
        title: "the importing cluster has no such Namespace",
        step: Step::Import,
        cause: "A Service is imported into the Namespace of the same name, and Freeport creates no Namespaces.",
        next: "kubectl --context {context} create namespace {namespace}",
        again: false,
    },
    Entry {
        code: 502,
        title: "the name of the imported Service is taken",
        step: Step::Import,
        cause: "The importing cluster has a Service antrea-mc-NAME that Freeport did not create and does not change.",
        next: "kubectl --context {context} -n {namespace} delete service {near}",
        again: false,
    },
    Entry {
        code: 503,
        title: "the importing cluster's API server refuses a part of the import",
        step: Step::Import,
        cause: "A quota, a policy or a webhook keeps freeport-member from writing the imported Service, ServiceImport or EndpointSlices.",
        next: "kubectl --context {context} -n {namespace} describe resourcequota",
        again: true,
    },
    Entry {
        code: 504,
        title: "no common IP family",
        step: Step::Import,
        cause: "The importing cluster has none of the IP families that the merged Service has.",
        next: "kubectl --context {context} -n {namespace} describe serviceimport {name}",
        again: false,
    },
    Entry {
        code: 505,
        title: "the ServiceImport belongs to somebody else",
        step: Step::Import,
        cause: "The importing cluster has a ServiceImport of this name that Freeport did not create and does not change.",
        next: "kubectl --context {context} -n {namespace} delete serviceimport {name}",
        again: false,
    },
    Entry {
        code: 506,
        title: "the Service is not imported yet",
        step: Step::Import,
        cause: "The merged Service exists, and the importing cluster has no ServiceImport of it, or one that is not ready. After an export that \
                takes a moment.",
        next: "kubectl --context {context} -n freeport-system logs deployment/freeport-member --tail 50",
        again: true,
    },
    Entry {
        code: 601,
        title: "the selector fits no Pod",
        step: Step::Endpoints,
        cause: "The exported Service has a selector, and no Pod of its Namespace has these labels.",
        next: "kubectl --context {context} -n {namespace} get pods --show-labels",
        again: true,
    },
    Entry {
        code: 605,
        title: "no endpoint can answer",
        step: Step::Endpoints,
        cause: "An exporting cluster has no endpoint of the Service that is ready.",
        next: "kubectl --context {context} -n {namespace} get endpointslices -l kubernetes.io/service-name={name} -o yaml",
        again: true,
    },
    Entry {
        code: 606,
        title: "nothing found, path not tried",
        step: Step::Endpoints,
        cause: "Exporters and importer agree, as far as their objects show. Whether packets arrive was not tried.",
        next: "kubectl --context {context} -n {namespace} get serviceimport {name}",
        again: false,
    },
    Entry {
        code: 607,
        title: "endpoints have not arrived",
        step: Step::Endpoints,
        cause: "An exporting cluster has endpoints that are ready, and the importing cluster has none of that cluster that is ready. After a change \
                that takes a moment; it lasts where no endpoint answers freeport-member of the importing cluster.",
        next: "kubectl --context {context} -n {namespace} describe serviceimport {name}",
        again: true,
    },
];

/// Words of commands in [`TABLE`].
pub(crate) const WORDS: [&str; 8] =
    ["context", "id", "leader", "leaderid", "name", "namespace", "near", "set"];

/// The command with a word in capitals where a value is not known.
pub(crate) fn unfilled(command: &str) -> String {
    WORDS.iter().fold(command.to_owned(), |command, word| {
        command.replace(&format!("{{{word}}}"), &word.to_uppercase())
    })
}

/// What is known of a code.
pub fn entry(code: Code) -> Option<&'static Entry> {
    TABLE.iter().find(|entry| entry.code == code.0)
}

impl Entry {
    /// The command to try, with words in capitals for what is known only of a cluster.
    pub fn command(&self) -> String {
        unfilled(self.next)
    }

    /// Whether another look may help, as a sentence.
    pub fn retry(&self) -> &'static str {
        match self.again {
            true => "Another look may help: Freeport may still be working on it.",
            false => "Another look does not help until somebody changes something.",
        }
    }

    /// What it depends on, as a sentence.
    pub fn depends(&self) -> String {
        match Step::ALL
            .iter()
            .take_while(|step| **step != self.step)
            .map(|step| step.word())
            .collect::<Vec<_>>()
        {
            before if before.is_empty() => format!("Step {}, the first one.", self.step.word()),
            before => format!(
                "Step {}: found only if these steps are not broken: {}.",
                self.step.word(),
                before.join(", ")
            ),
        }
    }

    /// Everything about it, as text.
    pub fn text(&self) -> String {
        let Self { cause, .. } = self;
        format!(
            "{}: {}\n\n{cause}\n{}\n{}\n\ntry: {}\n",
            Code(self.code),
            self.title,
            self.depends(),
            self.retry(),
            self.command()
        )
    }
}

/// The page of all codes, in Markdown.
pub fn page() -> String {
    let head = "<!-- Generated by `cargo run -p e2e --bin pages`; do not edit. -->\n# Troubleshooting\n\n\
                `freeport why NAMESPACE/NAME` walks from the clusters that export a Service to the cluster that imports it and names the first \
                step that is broken by a code. `freeport explain CODE` prints the section of a code. Codes never change their meaning. Words in \
                capitals stand for what `freeport why` fills in.\n";
    let section = |entry: &Entry| {
        format!(
            "\n## {}: {}\n\n{} {} {}\n\n```\n{}\n```\n",
            Code(entry.code),
            entry.title,
            entry.cause,
            entry.depends(),
            entry.retry(),
            entry.command()
        )
    };
    TABLE.iter().map(section).fold(head.to_owned(), |page, section| page + &section)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_sorted_and_each_is_there_once() {
        assert!(
            TABLE.is_sorted_by(|one, next| one.code < next.code && one.step as usize <= next.step as usize)
        );
    }

    #[test]
    fn a_code_is_read_as_people_write_it() {
        for text in ["FP501", "fp501", "501"] {
            assert_eq!(text.parse(), Ok(Code(501)), "{text}");
        }
        for text in ["", "FP", "FP5", "FP999", "501x", "Fp501", "+501"] {
            assert!(text.parse::<Code>().is_err(), "{text}");
        }
        assert!("FP999".parse::<Code>().unwrap_err().contains("FP101, FP102"));
    }

    #[test]
    fn an_explanation_has_all_of_an_entry() {
        let text = entry(Code(501)).unwrap().text();
        for part in [
            "FP501: the importing cluster",
            "try: kubectl --context CONTEXT create namespace NAMESPACE\n",
            "set, export",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(page().contains("\n## FP501: the importing cluster"));
        assert!(TABLE.iter().all(|entry| !entry.command().contains("{n")), "all words are known");
    }
}
