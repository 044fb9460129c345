//! What the checks of `freeport-offload` speak of: name and expression, each for the use of later ones.

pub(super) const VARIABLES: &[(&str, &str)] = &[
    ("resource", "request.resource.resource"),
    ("isNamespace", "variables.resource == 'namespaces'"),
    ("isNode", "variables.resource == 'nodes'"),
    ("isOffloading", "variables.resource == 'namespaceoffloadings'"),
    ("isSecret", "variables.resource == 'secrets'"),
    ("isPod", "variables.resource == 'pods'"),
    ("isBinding", "variables.resource == 'rolebindings'"),
    ("isStatus", "has(request.subResource) && request.subResource == 'status'"),
    ("stays", "request.operation != 'DELETE'"),
    ("written", "dyn(request.operation == 'DELETE' ? oldObject : object)"),
    ("metadata", "variables.written.metadata"),
    ("objectName", "string(variables.metadata.name)"),
    ("about", "request.kind.kind + ' ' + variables.objectName + ' is not for freeport-member: '"),
    // As it was before; nothing where it is created.
    ("before", "request.operation == 'CREATE' ? dyn({'metadata': {}}) : dyn(oldObject)"),
    ("labels", "variables.metadata.?labels.orValue({})"),
    ("labelsBefore", "variables.before.metadata.?labels.orValue({})"),
    // Its writes of the object. Who writes its status alone has not made it: api::view.
    (
        "entries",
        "
variables.before.metadata.?managedFields.orValue([]).filter(entry,
    entry[?'manager'].orValue('') == 'freeport-member' && entry[?'subresource'].orValue('') == '')",
    ),
    (
        "isMarked",
        "
variables.labels[?'app.kubernetes.io/managed-by'].orValue('') == 'freeport' &&
(variables.isNamespace ? 'liqo.io/remote-cluster-id' in variables.labels :
 variables.isNode ? variables.labels[?'liqo.io/type'].orValue('') == 'virtual-node' : true)",
    ),
    (
        "wasOurs",
        "
variables.labelsBefore[?'app.kubernetes.io/managed-by'].orValue('') == 'freeport' &&
(variables.isNamespace ? 'liqo.io/remote-cluster-id' in variables.labelsBefore :
 variables.isNode ? variables.labelsBefore[?'liqo.io/type'].orValue('') == 'virtual-node' : true) ||
variables.isNode && size(variables.entries) > 0 ||
variables.isNamespace && variables.entries.exists(entry,
    entry[?'fieldsV1'][?'f:metadata'][?'f:annotations'][?'f:liqo.io/managed-by-namespace-map'].hasValue())",
    ),
    // Namespaces that take no part: api::offload::twin.
    (
        "isOfTheSystem",
        "
variables.isNamespace &&
(variables.objectName.startsWith('kube-') || variables.objectName == 'freeport-system' ||
 'multicluster.freeport.dev/common-area' in variables.labels)",
    ),
    // A change of somebody's Namespace that is the one label at most.
    (
        "isTheLabel",
        "
variables.isNamespace && request.operation == 'UPDATE' &&
variables.labels.all(key, key == 'liqo.io/scheduling-enabled' ||
    variables.labelsBefore[?key].orValue('') == variables.labels[key] && key in variables.labelsBefore) &&
variables.labelsBefore.all(key, key == 'liqo.io/scheduling-enabled' || key in variables.labels) &&
variables.labels[?'liqo.io/scheduling-enabled'].orValue('true') == 'true' &&
['annotations', 'finalizers', 'ownerReferences'].all(field,
    variables.metadata[?field].orValue('') == variables.before.metadata[?field].orValue('')) &&
variables.written.?spec.orValue({}) == variables.before.?spec.orValue({})",
    ),
    ("labelsOfNamespace", "namespaceObject.?metadata.?labels.orValue({})"),
    // The Namespace that the object is in.
    (
        "isInTwin",
        "
variables.labelsOfNamespace[?'app.kubernetes.io/managed-by'].orValue('') == 'freeport' &&
'liqo.io/remote-cluster-id' in variables.labelsOfNamespace",
    ),
    // A label alone makes nobody's Pod the member's: it was there before, or the member puts it back. What the member made it may
    // delete, whoever took the label off.
    (
        "isHosted",
        "
variables.isInTwin && (variables.labels[?'liqo.io/managed-by'].orValue('') == 'shadowpod' || !variables.stays) &&
(request.operation == 'CREATE' || size(variables.entries) > 0 ||
 variables.labelsBefore[?'liqo.io/managed-by'].orValue('') == 'shadowpod')",
    ),
    // Of a Pod's Node a policy sees the name alone, which a real one may have too: Pods there are safe unless they tolerate everything
    // (as those of a network plugin do), or the taint of virtual nodes. A toleration without a key is of all taints. One that is being
    // deleted may go: where that taint has done it, nobody else ends it.
    (
        "isOnVirtualNode",
        "
request.operation != 'CREATE' && string(variables.before.?spec.?nodeName.orValue('')).startsWith('freeport-') &&
('deletionTimestamp' in variables.before.metadata ||
 variables.before.?spec.?tolerations.orValue([]).exists(toleration,
    toleration[?'key'].orValue('') in ['', 'virtual-node.liqo.io/not-allowed']))",
    ),
    // What `liqo.io/enabled` of a Namespace asks for.
    (
        "isByLabel",
        "
'liqo.io/resource-controlled-by' in variables.metadata.?annotations.orValue({})",
    ),
    (
        "wasByLabel",
        "
request.operation == 'DELETE' || 'liqo.io/resource-controlled-by' in variables.before.metadata.?annotations.orValue({})",
    ),
];
