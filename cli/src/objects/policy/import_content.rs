//! `freeport-import-content`: a ServiceImport that no cluster could serve as it says is refused, whoever writes it. The CRD as the
//! Multi-Cluster Services API has it checks none of this.
//!
//! It checks only what changes in a spec, so that finalizers of an old object can still be removed. Objects are `dyn`: an installed CRD may be
//! older and lack fields that are asked for here. Looking for doubles takes time that grows with the square of the ports; 250
//! ports with the longest names are well within what the API server spends on an expression.

use super::{Check, Policy, Refused, requests};
use crate::objects::{Object, rights::MCS};

/// Name of the policy and of its binding. Without the binding it is off.
pub(crate) const NAME: &str = "freeport-import-content";

const SAYS_SOMETHING_NEW: &str = "
request.operation == 'CREATE' || dyn(object).?spec.orValue({}) != dyn(oldObject).?spec.orValue({})";

const VARIABLES: &[(&str, &str)] = &[
    ("about", "'ServiceImport ' + request.namespace + '/' + string(dyn(object).metadata.name)"),
    ("spec", "dyn(object).?spec.orValue({})"),
    ("ports", "variables.spec[?'ports'].orValue([])"),
    ("names", "variables.ports.map(port, string(port[?'name'].orValue('')))"),
    ("numbers", "variables.ports.map(port, int(port[?'port'].orValue(0)))"),
    ("protocols", "variables.ports.map(port, string(port[?'protocol'].orValue('')))"),
    (
        "places",
        "
variables.ports.map(port,
    (string(port[?'protocol'].orValue('')) == '' ? 'TCP' : string(port[?'protocol'].orValue(''))) +
    '/' + string(int(port[?'port'].orValue(0))))",
    ),
    ("ips", "variables.spec[?'ips'].orValue([]).map(ip, string(ip))"),
    ("families", "variables.spec[?'ipFamilies'].orValue([]).map(family, string(family))"),
    // What is wrong, from here on.
    (
        "oddNames",
        "variables.names.filter(name, name != '' && !name.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$'))",
    ),
    ("oddNumbers", "variables.numbers.filter(number, number < 1 || number > 65535)"),
    ("oddProtocols", "variables.protocols.filter(protocol, !(protocol in ['', 'TCP', 'UDP', 'SCTP']))"),
    ("doubleNames", "variables.names.filter(name, !variables.names.exists_one(other, other == name))"),
    ("doublePlaces", "variables.places.filter(place, !variables.places.exists_one(other, other == place))"),
    ("oddIPs", "variables.ips.filter(ip, !isIP(ip))"),
    ("oddFamilies", "variables.families.filter(family, !(family in ['IPv4', 'IPv6']))"),
    (
        "doubleFamilies",
        "variables.families.filter(family, !variables.families.exists_one(other, other == family))",
    ),
];

const CHECKS: &[Check] = &[
    wrong(
        "size(variables.oddNames) == 0",
        "names of ports are DNS labels",
        "variables.about + ': port name \"' + variables.oddNames[0] + '\" is no DNS label'",
    ),
    wrong(
        "size(variables.oddNumbers) == 0",
        "ports have numbers from 1 to 65535",
        "variables.about + ': port ' + string(variables.oddNumbers[0]) + ' is not from 1 to 65535'",
    ),
    wrong(
        "size(variables.oddProtocols) == 0",
        "protocols of ports are TCP, UDP and SCTP",
        "variables.about + ': protocol \"' + variables.oddProtocols[0] + '\" is none of TCP, UDP and SCTP'",
    ),
    wrong(
        "size(variables.doubleNames) == 0",
        "names of ports are unique",
        "variables.about + ': two ports have the name \"' + variables.doubleNames[0] + '\"'",
    ),
    wrong(
        "size(variables.doublePlaces) == 0",
        "protocol and number of a port are unique",
        "variables.about + ': two ports are ' + variables.doublePlaces[0]",
    ),
    wrong(
        "size(variables.oddIPs) == 0",
        "ips are IP addresses",
        "variables.about + ': \"' + variables.oddIPs[0] + '\" in ips is no IP address'",
    ),
    wrong(
        "size(variables.oddFamilies) == 0",
        "ipFamilies are IPv4 and IPv6",
        "variables.about + ': \"' + variables.oddFamilies[0] + '\" in ipFamilies is neither IPv4 nor IPv6'",
    ),
    wrong(
        "size(variables.doubleFamilies) == 0",
        "ipFamilies are unique",
        "variables.about + ': ' + variables.doubleFamilies[0] + ' is twice in ipFamilies'",
    ),
];

const fn wrong(holds: &'static str, rule: &'static str, says: &'static str) -> Check {
    Check { holds, refused: Refused::Invalid, rule, says }
}

/// The policy and its binding.
pub(crate) fn objects() -> [Object; 2] {
    Policy {
        name: NAME,
        requests: vec![requests(MCS, &["v1alpha1", "v1beta1"], &["serviceimports"], &["CREATE", "UPDATE"])],
        conditions: &[("says-something-new", SAYS_SOMETHING_NEW)],
        namespaces: None,
        variables: VARIABLES,
        checks: CHECKS,
    }
    .objects()
}
