//! An API server in memory: verbs on kinds. No rights, no admission, no pruning.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use crate::{
    clock::Random,
    defaults,
    fields::Write,
    kinds::{Kind, built_in},
    select::Selector,
};

/// Events of a collection that a watch can begin at.
const REMEMBERED: usize = 4096;

type Place = (String, String);

/// What is asked.
#[derive(Clone, Debug, Default)]
pub struct Ask {
    pub method: String,
    pub path: String,
    pub query: BTreeMap<String, String>,
    pub content_type: String,
    pub accept: String,
    pub agent: String,
    pub body: Bytes,
}

/// What is answered.
pub enum Answer {
    Whole { code: u16, body: Bytes },
    Watch { events: mpsc::UnboundedReceiver<Told>, seconds: u64 },
}

/// A line of a watch, and when it was said.
pub struct Told {
    pub at: tokio::time::Instant,
    pub line: Bytes,
}

/// One API server.
pub struct Server {
    pub name: String,
    state: Mutex<State>,
}

struct State {
    version: u64,
    /// Whatever was before this version is forgotten.
    base: u64,
    kinds: BTreeMap<Place, Arc<Kind>>,
    collections: BTreeMap<Place, Collection>,
    pages: BTreeMap<u64, (Vec<Arc<Object>>, u64)>,
    next_page: u64,
    random: Random,
    addresses: u32,
    dual: bool,
    pub writes: u64,
    /// What was deleted: when, the kind's plural, and its name.
    deleted: Vec<(tokio::time::Instant, String, String)>,
}

#[derive(Default)]
struct Collection {
    objects: BTreeMap<Place, Arc<Object>>,
    history: VecDeque<Event>,
    /// Versions up to here are forgotten.
    forgotten: u64,
    watchers: Vec<Watcher>,
}

struct Object {
    value: Value,
    text: Bytes,
    /// As of this state of its CRD.
    schema: u64,
}

impl Object {
    fn new(value: Value) -> Arc<Self> {
        Self::of(value, 0)
    }

    fn of(value: Value, schema: u64) -> Arc<Self> {
        let text = Bytes::from(value.to_string());
        Arc::new(Self { value, text, schema })
    }
}

#[derive(Clone)]
struct Event {
    version: u64,
    /// As it is now, or as it was last.
    object: Arc<Object>,
    before: Option<Arc<Object>>,
    is_there: bool,
}

struct Watcher {
    /// Hears only what comes after this version.
    from: u64,
    namespace: Option<String>,
    selector: Selector,
    shape: Shape,
    tell: mpsc::UnboundedSender<Told>,
}

/// How an object is written.
#[derive(Clone, Debug)]
struct Shape {
    api_version: String,
    metadata: bool,
}

/// Why not.
#[derive(Debug)]
pub struct Refusal {
    code: u16,
    reason: &'static str,
    message: String,
    details: Value,
}

type Result<T, E = Refusal> = std::result::Result<T, E>;

fn refuse(code: u16, reason: &'static str, message: impl Into<String>) -> Refusal {
    Refusal { code, reason, message: message.into(), details: json!({}) }
}

impl Refusal {
    fn body(&self) -> Bytes {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        if self.details.as_object().is_some_and(|details| !details.is_empty()) {
            status["details"] = self.details.clone();
        }
        Bytes::from(status.to_string())
    }

    fn about(mut self, kind: &Kind, name: &str) -> Self {
        self.details["name"] = json!(name);
        if !kind.group.is_empty() {
            self.details["group"] = json!(kind.group);
        }
        // What a validation refuses is called by its kind.
        self.details["kind"] = json!(if self.code == 422 { &kind.kind } else { &kind.plural });
        self
    }
}

/// Where a request leads.
struct Target {
    kind: Arc<Kind>,
    version: String,
    namespace: String,
    name: String,
    subresource: String,
}

impl Server {
    pub fn new(name: &str, seed: u64, dual: bool) -> Arc<Self> {
        Arc::new(Self { name: name.to_owned(), state: Mutex::new(State::new(seed, dual)) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers one request.
    pub fn answer(&self, ask: &Ask) -> Answer {
        let mut state = self.lock();
        match state.answer(ask) {
            Ok(answer) => answer,
            Err(refusal) if refusal.reason == "NoSuchPath" => {
                Answer::Whole { code: 404, body: Bytes::from_static(b"404 page not found\n") }
            }
            Err(refusal) => Answer::Whole { code: refusal.code, body: refusal.body() },
        }
    }

    /// Creates or replaces, as an administrator would.
    pub fn install(&self, body: &Value) {
        self.lock().install(body);
    }

    /// What Kubernetes' controllers do: contents of Namespaces that go.
    pub fn tick(&self) {
        self.lock().collect_namespaces();
    }

    /// All objects of a kind, by Namespace and name.
    pub fn all(&self, group: &str, plural: &str) -> Vec<Value> {
        let state = self.lock();
        let collection = state.collections.get(&(group.to_owned(), plural.to_owned()));
        collection
            .into_iter()
            .flat_map(|all| all.objects.values())
            .map(|object| object.value.clone())
            .collect()
    }

    /// Everything that is stored, without what differs from run to run.
    pub fn everything(&self) -> BTreeMap<String, Value> {
        let state = self.lock();
        let mut all = BTreeMap::new();
        for ((group, plural), collection) in &state.collections {
            for ((namespace, name), object) in &collection.objects {
                all.insert(format!("{group}/{plural}/{namespace}/{name}"), object.value.clone());
            }
        }
        all
    }

    pub fn uid(&self, plural: &str, name: &str) -> Option<String> {
        let state = self.lock();
        let collection = state.collections.get(&(String::new(), plural.to_owned()))?;
        let object = collection.objects.get(&(String::new(), name.to_owned()))?;
        object.value["metadata"]["uid"].as_str().map(str::to_owned)
    }

    pub fn writes(&self) -> u64 {
        self.lock().writes
    }

    pub fn version(&self) -> u64 {
        self.lock().version
    }
}

fn rfc3339() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

impl State {
    fn new(seed: u64, dual: bool) -> Self {
        let mut state = Self {
            version: 100,
            base: 100,
            kinds: built_in()
                .map(|kind| ((kind.group.clone(), kind.plural.clone()), Arc::new(kind)))
                .collect(),
            collections: BTreeMap::new(),
            pages: BTreeMap::new(),
            next_page: 0,
            random: Random::new(seed),
            addresses: 0,
            dual,
            writes: 0,
            deleted: Vec::new(),
        };
        for namespace in ["kube-system", "default", "kube-public", "kube-node-lease"] {
            let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            state.install(&body);
        }
        state.install(&json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "kubernetes", "namespace": "default"},
            "spec": {"ports": [{"name": "https", "port": 443, "targetPort": 6443}]},
        }));
        state.install(&json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": "kubernetes", "namespace": "default", "labels": {"kubernetes.io/service-name": "kubernetes"}},
            "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": true}}], "ports": [{"name": "https", "port": 6443}],
        }));
        state
    }

    /// Without who watches, and without what they could be told of the past.
    fn copy(&self) -> Self {
        let bare = |all: &Collection| Collection {
            objects: all.objects.clone(),
            history: VecDeque::new(),
            forgotten: self.version,
            watchers: vec![],
        };
        Self {
            version: self.version,
            base: self.base,
            kinds: self.kinds.clone(),
            collections: self.collections.iter().map(|(place, all)| (place.clone(), bare(all))).collect(),
            pages: BTreeMap::new(),
            next_page: self.next_page,
            random: self.random,
            addresses: self.addresses,
            dual: self.dual,
            writes: self.writes,
            deleted: self.deleted.clone(),
        }
    }

    fn install(&mut self, body: &Value) {
        self.install_as(body, true);
    }

    fn install_as(&mut self, body: &Value, replaces: bool) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let api_version = text(&body["apiVersion"]);
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let kind = self.kinds.values().find(|kind| kind.group == group && body["kind"] == kind.kind.as_str());
        let Some(kind) = kind.cloned() else { panic!("no kind {} {}", body["apiVersion"], body["kind"]) };
        let (namespace, name) = (text(&body["metadata"]["namespace"]), text(&body["metadata"]["name"]));
        let target = Target {
            kind,
            version: version.into(),
            namespace,
            name: String::new(),
            subresource: String::new(),
        };
        let ask = Ask { body: Bytes::from(body.to_string()), agent: "admin".into(), ..Ask::default() };
        match self.create(&target, &ask) {
            Err(refusal) if refusal.code == 409 && replaces => {
                let target = Target { name, ..target };
                self.replace(&target, &ask).map(drop)
            }
            Err(refusal) if refusal.code == 409 => Ok(()),
            created => created.map(drop),
        }
        .unwrap_or_else(|refusal| panic!("{refusal:?}"));
    }

    fn target(&self, path: &str) -> Result<Target> {
        let no_path = || refuse(404, "NoSuchPath", "");
        let mut steps = path.trim_start_matches('/').split('/').filter(|step| !step.is_empty());
        let (group, version) = match steps.next() {
            Some("api") => ("", steps.next()),
            Some("apis") => (steps.next().ok_or_else(no_path)?, steps.next()),
            _ => return Err(no_path()),
        };
        let version = version.ok_or_else(no_path)?;
        let rest: Vec<&str> = steps.collect();
        let (namespace, rest) = match rest.as_slice() {
            ["namespaces", namespace, plural, ..]
                if !(group.is_empty() && matches!(*plural, "status" | "finalize")) =>
            {
                (*namespace, &rest[2..])
            }
            _ => ("", rest.as_slice()),
        };
        let plural = *rest.first().ok_or_else(no_path)?;
        let kind = self.kinds.get(&(group.to_owned(), plural.to_owned())).ok_or_else(no_path)?;
        if !kind.versions.iter().any(|served| served == version) {
            return Err(no_path());
        }
        let part = |at: usize| rest.get(at).map(|text| (*text).to_owned()).unwrap_or_default();
        let target = Target {
            kind: kind.clone(),
            version: version.to_owned(),
            namespace: namespace.to_owned(),
            name: part(1),
            subresource: part(2),
        };
        if target.subresource == "status" && !kind.status {
            return Err(no_path());
        }
        Ok(target)
    }

    fn answer(&mut self, ask: &Ask) -> Result<Answer> {
        if ask.path == "/version" {
            let body = json!({"major": "1", "minor": "36", "gitVersion": "v1.36.3-sim"});
            return Ok(whole(200, Bytes::from(body.to_string())));
        }
        let target = self.target(&ask.path)?;
        let shape = Shape {
            api_version: target.kind.api_version(&target.version),
            metadata: ask.accept.contains("as=PartialObjectMetadata"),
        };
        match (ask.method.as_str(), target.name.is_empty()) {
            ("GET", true) if ask.query.get("watch").is_some_and(|watch| watch == "true" || watch == "1") => {
                self.watch(&target, ask, shape)
            }
            ("GET", true) => self.list(&target, ask, &shape),
            ("GET", false) => {
                let object = self.find(&target)?;
                Ok(whole(200, written(&object, &shape, &target.kind)))
            }
            ("POST", false) if target.subresource == "binding" => self.bind(&target, ask),
            ("POST", true) => {
                self.create(&target, ask).map(|object| whole(201, written(&object, &shape, &target.kind)))
            }
            ("PUT", false) => {
                self.replace(&target, ask).map(|object| whole(200, written(&object, &shape, &target.kind)))
            }
            ("PATCH", false) => {
                let (object, created) = self.patch(&target, ask)?;
                Ok(whole(if created { 201 } else { 200 }, written(&object, &shape, &target.kind)))
            }
            ("DELETE", false) => self.delete(&target, ask),
            ("DELETE", true) => self.delete_all(&target, ask),
            _ => Err(refuse(
                405,
                "MethodNotAllowed",
                "the server does not allow this method on the requested resource",
            )),
        }
    }

    fn collection(&mut self, kind: &Kind) -> &mut Collection {
        self.collections.entry((kind.group.clone(), kind.plural.clone())).or_default()
    }

    fn find(&self, target: &Target) -> Result<Arc<Object>> {
        let place = (target.kind.group.clone(), target.kind.plural.clone());
        let at = (target.namespace.clone(), target.name.clone());
        let found = self.collections.get(&place).and_then(|all| all.objects.get(&at));
        found.cloned().ok_or_else(|| not_found(&target.kind, &target.name))
    }

    fn selected(&self, target: &Target, selector: &Selector) -> Vec<Arc<Object>> {
        let place = (target.kind.group.clone(), target.kind.plural.clone());
        let Some(all) = self.collections.get(&place) else { return vec![] };
        let has = |object: &&Arc<Object>| selector.has(&object.value);
        if target.namespace.is_empty() {
            return all.objects.values().filter(has).cloned().collect();
        }
        let from = (target.namespace.clone(), String::new());
        let within =
            all.objects.range(from..).take_while(|((namespace, _), _)| *namespace == target.namespace);
        within.map(|(_, object)| object).filter(has).cloned().collect()
    }

    fn list(&mut self, target: &Target, ask: &Ask, shape: &Shape) -> Result<Answer> {
        let query = |key: &str| ask.query.get(key).map(String::as_str).unwrap_or_default();
        let limit: usize = query("limit").parse().unwrap_or(0);
        let (mut items, version) = match query("continue") {
            "" => {
                let selector = Selector::parse(query("labelSelector"), query("fieldSelector"))
                    .map_err(|why| refuse(400, "BadRequest", why))?;
                (self.selected(target, &selector), self.version)
            }
            token => {
                let page = token.parse().ok().and_then(|token: u64| self.pages.remove(&token));
                page.ok_or_else(|| refuse(410, "Expired", "The provided continue parameter is too old"))?
            }
        };
        let mut metadata = json!({"resourceVersion": version.to_string()});
        if limit > 0 && items.len() > limit {
            let rest = items.split_off(limit);
            if query("labelSelector").is_empty() && query("fieldSelector").is_empty() {
                metadata["remainingItemCount"] = json!(rest.len());
            }
            self.next_page += 1;
            metadata["continue"] = json!(self.next_page.to_string());
            self.pages.insert(self.next_page, (rest, version));
            if self.pages.len() > 1000 {
                self.pages.pop_first();
            }
        }
        let (api_version, kind) = match shape.metadata {
            true => ("meta.k8s.io/v1".to_owned(), "PartialObjectMetadataList".to_owned()),
            false => (shape.api_version.clone(), format!("{}List", target.kind.kind)),
        };
        let mut text =
            format!(r#"{{"kind":"{kind}","apiVersion":"{api_version}","metadata":{metadata},"items":["#)
                .into_bytes();
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                text.push(b',');
            }
            text.extend_from_slice(&written(item, shape, &target.kind));
        }
        text.extend_from_slice(b"]}");
        Ok(whole(200, Bytes::from(text)))
    }

    fn watch(&mut self, target: &Target, ask: &Ask, shape: Shape) -> Result<Answer> {
        let query = |key: &str| ask.query.get(key).map(String::as_str).unwrap_or_default();
        let selector = Selector::parse(query("labelSelector"), query("fieldSelector"))
            .map_err(|why| refuse(400, "BadRequest", why))?;
        let (tell, events) = mpsc::unbounded_channel();
        let namespace = Some(target.namespace.clone()).filter(|namespace| !namespace.is_empty());
        let kind = target.kind.clone();
        let from: u64 = query("resourceVersion").parse().unwrap_or(0);
        let watcher = Watcher { from, namespace, selector, shape, tell };
        if from == 0 {
            for object in self.selected(target, &watcher.selector) {
                watcher.say("ADDED", &object, &kind);
            }
        }
        let base = self.base;
        let collection = self.collection(&kind);
        let forgotten = collection.forgotten.max(base);
        if from > 0 && from < forgotten {
            let status =
                refuse(410, "Expired", format!("too old resource version: {from} ({forgotten})")).body();
            let line = [br#"{"type":"ERROR","object":"#.as_slice(), &status, b"}\n"].concat();
            let _ = watcher.tell.send(Told { at: tokio::time::Instant::now(), line: Bytes::from(line) });
            return Ok(Answer::Watch { events, seconds: 1 });
        }
        for event in collection.history.iter().filter(|event| from > 0 && event.version > from) {
            watcher.hear(event, &kind);
        }
        collection.watchers.retain(|watcher| !watcher.tell.is_closed());
        collection.watchers.push(watcher);
        Ok(Answer::Watch { events, seconds: query("timeoutSeconds").parse().unwrap_or(1800) })
    }

    fn next_random(&mut self) -> u64 {
        self.random.next()
    }

    fn next_uid(&mut self) -> String {
        let (a, b) = (self.next_random(), self.next_random());
        format!(
            "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
            a >> 32,
            (a >> 16) & 0xffff,
            a & 0xfff,
            b >> 52,
            b & 0xffff_ffff_ffff
        )
    }

    fn check_namespace(&self, target: &Target) -> Result<()> {
        let Target { kind, namespace, .. } = target;
        if !kind.namespaced {
            return Ok(());
        }
        let namespaces = self.collections.get(&(String::new(), "namespaces".to_owned()));
        let found = namespaces.and_then(|all| all.objects.get(&(String::new(), namespace.clone())));
        let Some(found) = found else {
            let mut refusal = refuse(404, "NotFound", format!("namespaces {namespace:?} not found"));
            refusal.details = json!({"name": namespace, "kind": "namespaces"});
            return Err(refusal);
        };
        if found.value["metadata"]["deletionTimestamp"].is_string() {
            let message = format!(
                "{} is forbidden: unable to create new content in namespace {namespace} because it is being terminated",
                kind.plural
            );
            let mut refusal = refuse(403, "Forbidden", message);
            refusal.details = json!({"kind": kind.plural, "group": kind.group, "causes": [{
                "reason": "NamespaceTerminating", "message": format!("namespace {namespace} is being terminated"), "field": "metadata.namespace",
            }]});
            return Err(refusal);
        }
        Ok(())
    }

    fn create(&mut self, target: &Target, ask: &Ask) -> Result<Arc<Object>> {
        let mut new = decoded(&ask.body)?;
        let Target { kind, namespace, .. } = target;
        let metadata =
            new["metadata"].as_object_mut().ok_or_else(|| refuse(400, "BadRequest", "no metadata"))?;
        if metadata.get("resourceVersion").is_some_and(|version| version != "") {
            return Err(refuse(500, "", "resourceVersion should not be set on objects to be created"));
        }
        let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        let (mut name, generate) = (text(metadata.get("name")), text(metadata.get("generateName")));
        if name.is_empty() {
            if generate.is_empty() {
                return Err(refuse(422, "Invalid", "name or generateName is required"));
            }
            let random = self.next_random();
            let letters = b"bcdfghjklmnpqrstvwxz2456789";
            let of = |at: u32| char::from(letters[((random >> (8 * at)) % letters.len() as u64) as usize]);
            name = generate + &(0..5).map(of).collect::<String>();
        }
        let said = text(metadata.get("namespace"));
        if kind.namespaced && !said.is_empty() && said != *namespace {
            return Err(refuse(
                400,
                "BadRequest",
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        self.check_namespace(target)?;
        let at = (namespace.clone(), name.clone());
        if self.collection(kind).objects.contains_key(&at) {
            let message = format!("{} {name:?} already exists", qualified(kind));
            return Err(refuse(409, "AlreadyExists", message).about(kind, &name));
        }
        self.make(target, ask, new, &name, None)
    }

    /// Stores a new object.
    fn make(
        &mut self,
        target: &Target,
        ask: &Ask,
        mut new: Value,
        name: &str,
        managed: Option<Value>,
    ) -> Result<Arc<Object>> {
        let Target { kind, namespace, .. } = target;
        let (uid, now) = (self.next_uid(), rfc3339());
        new["apiVersion"] = json!(kind.api_version(&target.version));
        new["kind"] = json!(kind.kind);
        if kind.status && (kind.custom || kind.plural != "namespaces") {
            new.as_object_mut().map(|new| new.remove("status"));
        }
        let Some(metadata) = new["metadata"].as_object_mut() else {
            return Err(refuse(400, "BadRequest", "no metadata"));
        };
        metadata.insert("name".into(), json!(name));
        if kind.namespaced {
            metadata.insert("namespace".into(), json!(namespace));
        }
        metadata.insert("uid".into(), json!(uid));
        metadata.insert("creationTimestamp".into(), json!(now));
        for key in ["deletionTimestamp", "deletionGracePeriodSeconds", "managedFields"] {
            metadata.remove(key);
        }
        if kind.generation {
            metadata.insert("generation".into(), json!(1));
        }
        kind.schema.iter().for_each(|schema| prune("", &mut new, schema));
        defaults::apply(kind, &mut new, None, &mut self.addresses, self.dual)
            .map_err(|why| refuse(422, "Invalid", why).about(kind, name))?;
        tidy(&mut new);
        match managed {
            Some(managed) => new["metadata"]["managedFields"] = managed,
            None => self.write(target, ask, &now, |write| write.updated(None, &mut new)),
        }
        tidy(&mut new);
        if ask.query.contains_key("dryRun") {
            return Ok(Object::new(new));
        }
        Ok(self.commit(kind, (namespace.clone(), name.to_owned()), None, Some(new)))
    }

    fn write(&self, target: &Target, ask: &Ask, now: &str, how: impl FnOnce(&Write<'_>)) {
        let agent = ask.agent.split('/').next().unwrap_or_default();
        how(&Write {
            manager: ask.query.get("fieldManager").map_or(agent, String::as_str),
            subresource: &target.subresource,
            has_status: target.kind.status,
            api_version: &target.kind.api_version(&target.version),
            now,
            schema: target.kind.schema.as_ref(),
        });
    }

    fn replace(&mut self, target: &Target, ask: &Ask) -> Result<Arc<Object>> {
        let new = decoded(&ask.body)?;
        let old = self.find(target)?;
        if target.kind.custom && ask.agent != "admin" && !new["metadata"]["resourceVersion"].is_string() {
            let mut refusal = refuse(
                422,
                "Invalid",
                "metadata.resourceVersion: Invalid value: 0: must be specified for an update",
            )
            .about(&target.kind, &target.name);
            refusal.details["kind"] = json!(target.kind.plural);
            refusal.details["causes"] =
                json!([{"field": "metadata.resourceVersion", "reason": "FieldValueInvalid"}]);
            return Err(refusal);
        }
        self.change(target, ask, &old, new, false)
    }

    fn patch(&mut self, target: &Target, ask: &Ask) -> Result<(Arc<Object>, bool)> {
        let patch = decoded(&ask.body)?;
        let found = self.find(target);
        if ask.content_type.contains("apply-patch") {
            return self.apply(target, ask, found.ok(), &patch);
        }
        if !ask.content_type.contains("merge-patch") {
            return Err(refuse(415, "UnsupportedMediaType", format!("no model of {}", ask.content_type)));
        }
        let old = found?;
        let mut new = old.value.clone();
        merge(&mut new, &patch);
        if new["metadata"]["uid"] != old.value["metadata"]["uid"] {
            let said = new["metadata"]["resourceVersion"].as_str().unwrap_or_default();
            if !said.is_empty() && old.value["metadata"]["resourceVersion"] != said {
                return Err(conflict(target));
            }
            let cause = json!({"field": "metadata.uid", "reason": "FieldValueInvalid"});
            let mut refusal = refuse(422, "Invalid", "metadata.uid: Invalid value: field is immutable")
                .about(&target.kind, &target.name);
            refusal.details["causes"] = json!([cause, cause]);
            return Err(refusal);
        }
        Ok((self.change(target, ask, &old, new, false)?, false))
    }

    fn apply(
        &mut self,
        target: &Target,
        ask: &Ask,
        old: Option<Arc<Object>>,
        patch: &Value,
    ) -> Result<(Arc<Object>, bool)> {
        let force = ask.query.get("force").is_some_and(|force| force == "true");
        let said = |key: &str| patch["metadata"][key].as_str().filter(|said| !said.is_empty());
        let now = rfc3339();
        if let Some(old) = &old {
            for key in ["resourceVersion"] {
                if said(key).is_some_and(|said| old.value["metadata"][key] != said) {
                    return Err(conflict(target));
                }
            }
        } else if said("uid").is_some() || said("resourceVersion").is_some() {
            return Err(conflict(target));
        } else if !target.subresource.is_empty() {
            return Err(not_found(&target.kind, &target.name));
        }
        if let Some(schema) = &target.kind.schema {
            let mut unknown = Vec::new();
            undeclared("", patch, schema, &mut unknown);
            if !unknown.is_empty() {
                let all = unknown
                    .iter()
                    .map(|path| format!("{path}: field not declared in schema"))
                    .collect::<Vec<_>>()
                    .join("\n  ");
                let message = format!(
                    "failed to create typed patch object ({}/{}; {}, Kind={}): errors:\n  {all}",
                    target.namespace,
                    target.name,
                    target.kind.api_version(&target.version),
                    target.kind.kind
                );
                return Err(refuse(500, "", message));
            }
        }
        let mut applied = Err(String::new());
        self.write(target, ask, &now, |write| {
            applied = write.applied(old.as_ref().map(|old| &old.value), patch, force)
        });
        let new = applied.map_err(|why| refuse(409, "Conflict", why))?;
        match old {
            Some(old) => Ok((self.change(target, ask, &old, new, true)?, false)),
            None => {
                self.check_namespace(target)?;
                let managed = new["metadata"]["managedFields"].clone();
                let target_name = target.name.clone();
                Ok((self.make(target, ask, new, &target_name, Some(managed))?, true))
            }
        }
    }

    /// Stores `new` in place of `old`, as far as the request may.
    fn change(
        &mut self,
        target: &Target,
        ask: &Ask,
        old: &Arc<Object>,
        mut new: Value,
        managed: bool,
    ) -> Result<Arc<Object>> {
        let (kind, was) = (&target.kind, &old.value);
        let said = new["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        if !said.is_empty() && was["metadata"]["resourceVersion"] != said {
            return Err(conflict(target));
        }
        if new["metadata"]["uid"].is_string() && new["metadata"]["uid"] != was["metadata"]["uid"] {
            return Err(conflict(target));
        }
        new["apiVersion"] = json!(kind.api_version(&target.version));
        new["kind"] = json!(kind.kind);
        let keep = |new: &mut Value, key: &str| match was.get(key) {
            Some(value) => new[key] = value.clone(),
            None => drop(new.as_object_mut().map(|new| new.remove(key))),
        };
        match target.subresource.as_str() {
            "status" => {
                let managed = new["metadata"]["managedFields"].clone();
                let status = new["status"].clone();
                new = was.clone();
                new["apiVersion"] = json!(kind.api_version(&target.version));
                if !managed.is_null() {
                    new["metadata"]["managedFields"] = managed;
                }
                match status.is_null() {
                    true => drop(new.as_object_mut().map(|new| new.remove("status"))),
                    false => new["status"] = status,
                }
            }
            _ if kind.status => keep(&mut new, "status"),
            _ => {}
        }
        let had = |key: &str| was["metadata"].get(key).cloned();
        let Some(metadata) = new["metadata"].as_object_mut() else {
            return Err(refuse(400, "BadRequest", "no metadata"));
        };
        for key in [
            "name",
            "namespace",
            "uid",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "generation",
            "resourceVersion",
            "generateName",
        ] {
            match had(key) {
                Some(value) => drop(metadata.insert(key.into(), value)),
                None => drop(metadata.remove(key)),
            }
        }
        if !managed && !metadata.get("managedFields").is_some_and(Value::is_array) {
            had("managedFields").map(|value| metadata.insert("managedFields".into(), value));
        }
        let finalizers =
            |object: &Value| object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
        let is_going = was["metadata"]["deletionTimestamp"].is_string();
        let before = finalizers(was);
        if is_going && finalizers(&new).iter().any(|held| !before.contains(held)) {
            return Err(refuse(422, "Invalid", "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted").about(kind, &target.name));
        }
        kind.schema.iter().for_each(|schema| prune("", &mut new, schema));
        defaults::apply(kind, &mut new, Some(was), &mut self.addresses, self.dual)
            .map_err(|why| refuse(422, "Invalid", why).about(kind, &target.name))?;
        tidy(&mut new);
        let now = rfc3339();
        if same(&new, was, managed) {
            return Ok(old.clone());
        }
        let labels = |object: &Value| object["metadata"]["labels"].clone();
        let is_relabelled = kind.plural == "endpointslices" && labels(&new) != labels(was);
        if kind.generation && (is_relabelled || content(&new) != content(was)) {
            new["metadata"]["generation"] = json!(was["metadata"]["generation"].as_i64().unwrap_or(0) + 1);
        }
        if !managed {
            if had("managedFields").is_some() {
                self.write(target, ask, &now, |write| write.updated(Some(was), &mut new));
            }
        }
        if ask.query.contains_key("dryRun") {
            return Ok(Object::new(new));
        }
        let at = (target.namespace.clone(), target.name.clone());
        if is_going
            && finalizers(&new).is_empty()
            && was["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0
            && kind.plural != "namespaces"
        {
            // The answer is the object as it was last.
            self.commit(kind, at, Some(Object::new(new.clone())), None);
            return Ok(Object::new(new));
        }
        Ok(self.commit(kind, at, Some(old.clone()), Some(new)))
    }

    /// What a scheduler says of a Pod.
    fn bind(&mut self, target: &Target, ask: &Ask) -> Result<Answer> {
        let binding = decoded(&ask.body)?;
        let old = self.find(target)?;
        let mut new = old.value.clone();
        new["spec"]["nodeName"] = binding["target"]["name"].clone();
        self.commit(&target.kind, (target.namespace.clone(), target.name.clone()), Some(old), Some(new));
        Ok(whole(
            201,
            Bytes::from_static(br#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}"#),
        ))
    }

    fn delete(&mut self, target: &Target, ask: &Ask) -> Result<Answer> {
        let options = if ask.body.is_empty() { json!({}) } else { decoded(&ask.body)? };
        let old = self.find(target)?;
        for (key, name) in [("uid", "UID"), ("resourceVersion", "ResourceVersion")] {
            let wanted = options["preconditions"][key].as_str();
            if wanted.is_some_and(|wanted| old.value["metadata"][key] != wanted) {
                let message = format!(
                    "Operation cannot be fulfilled on {} {:?}: Precondition failed: {name} in precondition: {}, {name} in object meta: {}",
                    qualified(&target.kind),
                    target.name,
                    wanted.unwrap_or_default(),
                    old.value["metadata"][key].as_str().unwrap_or_default()
                );
                let mut refusal = refuse(409, "Conflict", message).about(&target.kind, &target.name);
                if !target.kind.custom {
                    refusal.details["kind"] = json!(target.kind.kind);
                }
                return Err(refusal);
            }
        }
        let dry = ask.query.contains_key("dryRun") || options["dryRun"].is_array();
        if dry {
            return Ok(whole(200, old.text.clone()));
        }
        let at = (target.namespace.clone(), target.name.clone());
        if target.kind.plural == "pods" {
            return Ok(self.end_pod(&target.kind, at, &old, options["gracePeriodSeconds"].as_i64()));
        }
        Ok(self.end(&target.kind, at, &old))
    }

    /// A Pod on a node goes when its kubelet says so, by deleting it at once.
    fn end_pod(&mut self, kind: &Arc<Kind>, at: Place, old: &Arc<Object>, grace: Option<i64>) -> Answer {
        let is_over = matches!(old.value["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
        let has_node = old.value["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
        let said = old.value["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
        let grace = if is_over || !has_node { 0 } else { grace.unwrap_or(said) };
        if grace == 0 {
            return self.end(kind, at, old);
        }
        let was = old.value["metadata"]["deletionGracePeriodSeconds"].as_i64();
        if was.is_some_and(|was| was <= grace) {
            return whole(200, old.text.clone());
        }
        let mut going = old.value.clone();
        let now = Timestamp::now() + std::time::Duration::from_secs(u64::try_from(grace).unwrap_or(0));
        going["metadata"]["deletionTimestamp"] = json!(now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
        going["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
        let object = self.commit(kind, at, Some(old.clone()), Some(going));
        whole(200, object.text.clone())
    }

    fn end(&mut self, kind: &Arc<Kind>, at: Place, old: &Arc<Object>) -> Answer {
        let is_held = old.value["metadata"]["finalizers"].as_array().is_some_and(|held| !held.is_empty());
        if is_held || kind.plural == "namespaces" && kind.group.is_empty() {
            if old.value["metadata"]["deletionTimestamp"].is_string() {
                return whole(200, old.text.clone());
            }
            let mut going = old.value.clone();
            going["metadata"]["deletionTimestamp"] = json!(rfc3339());
            going["metadata"]["deletionGracePeriodSeconds"] = json!(0);
            if kind.generation {
                going["metadata"]["generation"] =
                    json!(going["metadata"]["generation"].as_i64().unwrap_or(0) + 1);
            }
            if kind.plural == "namespaces" {
                going["metadata"]
                    .as_object_mut()
                    .map(|metadata| metadata.remove("deletionGracePeriodSeconds"));
                going["status"]["phase"] = json!("Terminating");
            }
            let object = self.commit(kind, at, Some(old.clone()), Some(going));
            return whole(200, object.text.clone());
        }
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
            "details": {"name": at.1, "kind": kind.plural, "uid": old.value["metadata"]["uid"]},
        });
        if !kind.group.is_empty() {
            status["details"]["group"] = json!(kind.group);
        }
        self.commit(kind, at, Some(old.clone()), None);
        whole(200, Bytes::from(status.to_string()))
    }

    fn delete_all(&mut self, target: &Target, ask: &Ask) -> Result<Answer> {
        let query = |key: &str| ask.query.get(key).map(String::as_str).unwrap_or_default();
        let selector = Selector::parse(query("labelSelector"), query("fieldSelector"))
            .map_err(|why| refuse(400, "BadRequest", why))?;
        for object in self.selected(target, &selector) {
            self.end(&target.kind, place(&object.value), &object);
        }
        let shape = Shape { api_version: target.kind.api_version(&target.version), metadata: false };
        self.list(&Target { namespace: "-".into(), ..clone(target) }, &Ask::default(), &shape)
    }

    /// Stores it, and tells who watches.
    fn commit(
        &mut self,
        kind: &Arc<Kind>,
        at: Place,
        before: Option<Arc<Object>>,
        new: Option<Value>,
    ) -> Arc<Object> {
        self.version += 1;
        self.writes += 1;
        let version = self.version;
        let is_there = new.is_some();
        let mut value =
            new.unwrap_or_else(|| before.as_ref().map(|before| before.value.clone()).unwrap_or_default());
        value["metadata"]["resourceVersion"] = json!(version.to_string());
        let object = Object::of(value, kind.revision);
        let collection = self.collection(kind);
        match is_there {
            true => drop(collection.objects.insert(at, object.clone())),
            false => {
                let gone = (tokio::time::Instant::now(), kind.plural.clone(), at.1.clone());
                collection.objects.remove(&at);
                self.deleted.push(gone);
            }
        }
        let event = Event { version, object: object.clone(), before, is_there };
        let collection = self.collection(kind);
        collection.watchers.retain(|watcher| !watcher.tell.is_closed());
        collection.watchers.iter().for_each(|watcher| watcher.hear(&event, kind));
        collection.history.push_back(event);
        if collection.history.len() > REMEMBERED
            && let Some(oldest) = collection.history.pop_front()
        {
            collection.forgotten = oldest.version;
        }
        if kind.plural == "customresourcedefinitions" {
            self.serve(&object.value, is_there);
        }
        object
    }

    /// A CRD has changed.
    fn serve(&mut self, crd: &Value, is_there: bool) {
        let Some(mut kind) = Kind::of_crd(crd) else { return };
        kind.revision = self.version;
        let place = (kind.group.clone(), kind.plural.clone());
        if is_there {
            self.kinds.insert(place, Arc::new(kind));
            return;
        }
        let kind = Arc::new(kind);
        let all: Vec<_> =
            self.collection(&kind).objects.iter().map(|(at, object)| (at.clone(), object.clone())).collect();
        for (at, object) in all {
            self.commit(&kind, at, Some(object), None);
        }
        self.kinds.remove(&place);
        self.collections.remove(&place);
    }

    fn collect_namespaces(&mut self) {
        let namespaces = self.kinds[&(String::new(), "namespaces".to_owned())].clone();
        let maps = self.kinds[&(String::new(), "configmaps".to_owned())].clone();
        let accounts = self.kinds[&(String::new(), "serviceaccounts".to_owned())].clone();
        let live = self
            .collection(&namespaces)
            .objects
            .values()
            .filter(|object| !object.value["metadata"]["deletionTimestamp"].is_string());
        let live: Vec<_> =
            live.filter_map(|object| object.value["metadata"]["name"].as_str().map(str::to_owned)).collect();
        for namespace in live {
            if !self.collection(&accounts).objects.contains_key(&(namespace.clone(), "default".to_owned())) {
                self.install_as(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": namespace}}), false);
            }
            if !self
                .collection(&maps)
                .objects
                .contains_key(&(namespace.clone(), "kube-root-ca.crt".to_owned()))
            {
                self.install_as(
                    &json!({
                        "apiVersion": "v1", "kind": "ConfigMap", "data": {"ca.crt": "ca"},
                        "metadata": {"name": "kube-root-ca.crt", "namespace": namespace},
                    }),
                    false,
                );
            }
        }
        let going = self
            .collection(&namespaces)
            .objects
            .iter()
            .filter(|(_, object)| object.value["metadata"]["deletionTimestamp"].is_string());
        let going: Vec<_> = going.map(|(at, object)| (at.clone(), object.clone())).collect();
        for (at, namespace) in going {
            let kinds: Vec<_> = self.kinds.values().filter(|kind| kind.namespaced).cloned().collect();
            let mut left = 0;
            for kind in kinds {
                let of = |((namespace, _), _): &(&Place, &Arc<Object>)| *namespace == at.1;
                let all: Vec<_> = self
                    .collection(&kind)
                    .objects
                    .iter()
                    .filter(of)
                    .map(|(at, object)| (at.clone(), object.clone()))
                    .collect();
                for (at, object) in all {
                    self.end(&kind, at.clone(), &object);
                    left += usize::from(self.collection(&kind).objects.contains_key(&at));
                }
            }
            if left == 0 {
                self.commit(&namespaces, at, Some(namespace), None);
            }
        }
    }
}

impl Watcher {
    fn hear(&self, event: &Event, kind: &Kind) {
        if event.version <= self.from {
            return;
        }
        let selects = |object: &Object| {
            self.namespace
                .as_ref()
                .is_none_or(|namespace| object.value["metadata"]["namespace"] == namespace.as_str())
                && self.selector.has(&object.value)
        };
        let was = event.before.as_ref().is_some_and(|before| selects(before));
        let is = event.is_there && selects(&event.object);
        match (was, is) {
            (false, true) => self.say("ADDED", &event.object, kind),
            (true, true) => self.say("MODIFIED", &event.object, kind),
            (true, false) if !event.is_there => self.say("DELETED", &event.object, kind),
            (true, false) => {
                let mut last = event.before.as_ref().map(|before| before.value.clone()).unwrap_or_default();
                last["metadata"]["resourceVersion"] = json!(event.version.to_string());
                self.say("DELETED", &Object::new(last), kind);
            }
            (false, false) => {}
        }
    }

    fn say(&self, what: &str, object: &Object, kind: &Kind) {
        let text = written(object, &self.shape, kind);
        let mut line = Vec::with_capacity(text.len() + 40);
        line.extend_from_slice(br#"{"type":""#);
        line.extend_from_slice(what.as_bytes());
        line.extend_from_slice(br#"","object":"#);
        line.extend_from_slice(&text);
        line.extend_from_slice(b"}\n");
        // Who does not listen any more is forgotten at the next change.
        let _ = self.tell.send(Told { at: tokio::time::Instant::now(), line: Bytes::from(line) });
    }
}

fn clone(target: &Target) -> Target {
    let Target { kind, version, namespace, name, subresource } = target;
    Target {
        kind: kind.clone(),
        version: version.clone(),
        namespace: namespace.clone(),
        name: name.clone(),
        subresource: subresource.clone(),
    }
}

fn place(object: &Value) -> Place {
    let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
}

fn whole(code: u16, body: Bytes) -> Answer {
    Answer::Whole { code, body }
}

fn qualified(kind: &Kind) -> String {
    if kind.group.is_empty() { kind.plural.clone() } else { format!("{}.{}", kind.plural, kind.group) }
}

fn not_found(kind: &Kind, name: &str) -> Refusal {
    refuse(404, "NotFound", format!("{} {name:?} not found", qualified(kind))).about(kind, name)
}

fn conflict(target: &Target) -> Refusal {
    let message = format!(
        "Operation cannot be fulfilled on {} {:?}: the object has been modified; please apply your changes to the latest version and try again",
        qualified(&target.kind),
        target.name
    );
    refuse(409, "Conflict", message).about(&target.kind, &target.name)
}

fn decoded(body: &[u8]) -> Result<Value> {
    serde_json::from_slice(body).map_err(|error| refuse(400, "BadRequest", error.to_string()))
}

fn written(object: &Object, shape: &Shape, kind: &Kind) -> Bytes {
    if shape.metadata {
        let only = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object.value["metadata"]});
        return Bytes::from(only.to_string());
    }
    if object.value["apiVersion"] == shape.api_version.as_str()
        && (object.schema == kind.revision || !kind.custom)
    {
        return object.text.clone();
    }
    let mut other = object.value.clone();
    kind.schema.iter().for_each(|schema| prune("", &mut other, schema));
    other["apiVersion"] = json!(shape.api_version);
    Bytes::from(other.to_string())
}

/// What a generation counts changes of.
fn content(object: &Value) -> Map<String, Value> {
    let mut content = object.as_object().cloned().unwrap_or_default();
    for key in ["metadata", "status", "apiVersion"] {
        content.remove(key);
    }
    content
}

fn same(new: &Value, old: &Value, with_managers: bool) -> bool {
    let without = |object: &Value| {
        let mut object = object.clone();
        object["apiVersion"] = Value::Null;
        if with_managers {
            // Times alone are no change.
            let entries = object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut);
            entries.into_iter().flatten().for_each(|entry| entry["time"] = Value::Null);
        } else {
            object["metadata"]["managedFields"] = Value::Null;
        }
        object
    };
    without(new) == without(old)
}

/// As an API server writes: nothing that is empty in metadata, no nulls.
fn tidy(object: &mut Value) {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|_, value| match value {
            Value::Null => false,
            Value::Object(map) => !map.is_empty(),
            Value::Array(list) => !list.is_empty(),
            Value::String(text) => !text.is_empty(),
            _ => true,
        });
    }
}

/// RFC 7386
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let Some(target) = target.as_object_mut() else { return };
    for (key, value) in patch {
        if value.is_null() {
            target.remove(key);
        } else {
            merge(target.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

impl Server {
    /// Deletes it, as a user would.
    pub fn remove(&self, group: &str, plural: &str, namespace: &str, name: &str) {
        let mut state = self.lock();
        let Some(kind) = state.kinds.get(&(group.to_owned(), plural.to_owned())).cloned() else { return };
        let at = (namespace.to_owned(), name.to_owned());
        if let Some(object) = state.collection(&kind).objects.get(&at).cloned() {
            state.end(&kind, at, &object);
        }
    }
}

/// A copy of what a server held.
pub struct Backup(State);

impl Server {
    /// Creates it unless it is there.
    pub fn ensure(&self, body: &Value) {
        self.lock().install_as(body, false);
    }

    pub fn back_up(&self) -> Backup {
        Backup(self.lock().copy())
    }

    /// Puts it back to what it was: whoever watches has to begin again.
    pub fn restore(&self, backup: &Backup) {
        *self.lock() = backup.0.copy();
    }

    /// In its place is an empty one.
    pub fn replace(&self, seed: u64) {
        let dual = self.lock().dual;
        *self.lock() = State::new(seed, dual);
    }
}

/// Takes away what the schema does not have.
fn prune(path: &str, value: &mut Value, schema: &Value) {
    match value {
        Value::Object(map) => {
            let keeps = schema["x-kubernetes-preserve-unknown-fields"] == true;
            let (known, others) = (schema["properties"].as_object(), &schema["additionalProperties"]);
            let is_top = path.is_empty();
            map.retain(|key, value| {
                if is_top && matches!(key.as_str(), "apiVersion" | "kind" | "metadata") {
                    return true;
                }
                match known.and_then(|known| known.get(key)) {
                    Some(schema) => prune(key, value, schema),
                    None if others.is_object() => prune(key, value, others),
                    None => return keeps || *others == true,
                }
                true
            });
        }
        Value::Array(list) => list.iter_mut().for_each(|item| prune("[]", item, &schema["items"])),
        _ => {}
    }
}

/// Fields that the schema does not have.
fn undeclared(path: &str, value: &Value, schema: &Value, all: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            let keeps = schema["x-kubernetes-preserve-unknown-fields"] == true;
            for (key, value) in map {
                if path.is_empty() && matches!(key.as_str(), "apiVersion" | "kind" | "metadata") {
                    continue;
                }
                let at = format!("{path}.{key}");
                match schema["properties"].get(key) {
                    Some(schema) => undeclared(&at, value, schema, all),
                    None if schema["additionalProperties"].is_object() => {
                        undeclared(&at, value, &schema["additionalProperties"], all)
                    }
                    None if keeps || schema["additionalProperties"] == true => {}
                    None => all.push(at),
                }
            }
        }
        Value::Array(list) => {
            list.iter().for_each(|item| undeclared(&format!("{path}[]"), item, &schema["items"], all))
        }
        _ => {}
    }
}

impl Server {
    /// What was deleted, and when.
    pub fn deletions(&self) -> Vec<(tokio::time::Instant, String, String)> {
        self.lock().deleted.clone()
    }

    /// Names of all objects of a kind in a Namespace.
    pub fn names(&self, group: &str, plural: &str) -> Vec<String> {
        self.all(group, plural)
            .iter()
            .filter_map(|object| object["metadata"]["name"].as_str().map(str::to_owned))
            .collect()
    }
}
