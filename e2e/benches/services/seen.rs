//! What is seen of imports and records, by watches of our own.

use std::{
    collections::{HashMap, HashSet},
    fmt::Debug,
    time::{Duration, Instant},
};

use api::{mcs::ServiceImport, name, resource_export::ResourceExport, resource_import::ResourceImport};
use e2e::cluster::Cluster;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::{
    NamespaceResourceScope,
    api::{core::v1::Service, discovery::v1::EndpointSlice},
};
use kube::{
    Api, Resource, ResourceExt,
    runtime::{WatchStreamExt, watcher},
};
use serde::de::DeserializeOwned;
use tokio::{sync::watch, task::JoinSet, time::timeout};

use crate::{
    endpoints, meter,
    run::Side,
    set::{IMPORTERS, Set},
};

/// What is seen of one side.
pub(crate) struct Seen {
    /// By importing cluster.
    imports: HashMap<&'static str, watch::Receiver<State>>,
    records: watch::Receiver<State>,
    _watching: JoinSet<()>,
}

#[derive(Default)]
pub(crate) struct State {
    /// Kind and name.
    objects: HashSet<(String, String)>,
    /// By name of the Service.
    imports: HashMap<String, Import>,
    /// How many can be used.
    ready: usize,
}

#[derive(Default)]
struct Import {
    has_address: bool,
    /// Endpoints of each slice.
    slices: HashMap<String, usize>,
    ready: Option<Instant>,
    /// Numbers in the endpoints, and when they were seen.
    marks: Vec<(u32, Instant)>,
}

impl State {
    /// Takes in one object: what it changes about the import of this Service.
    fn take_in<K: Resource<DynamicType = ()>>(
        &mut self,
        object: &K,
        is_there: bool,
        import: Option<(String, impl FnOnce(&mut Import))>,
    ) {
        let key = (K::kind(&()).into_owned(), object.name_any());
        match is_there {
            true => drop(self.objects.insert(key)),
            false => drop(self.objects.remove(&key)),
        }
        let Some((service, change)) = import else { return };
        let import = self.imports.entry(service).or_default();
        let was = import.ready.is_some();
        change(import);
        let is_ready = import.has_address && import.slices.values().sum::<usize>() >= endpoints::COUNT;
        import.ready = import.ready.or_else(|| Some(Instant::now())).filter(|_| is_ready);
        self.ready = self.ready + usize::from(is_ready) - usize::from(was);
    }

    fn import(&mut self, object: &ServiceImport, is_there: bool) {
        let has_address = is_there && !object.spec.ips.is_empty();
        let change = |import: &mut Import| import.has_address = has_address;
        self.take_in(object, is_there, Some((object.name_any(), change)));
    }

    fn slice(&mut self, object: &EndpointSlice, is_there: bool) {
        // The exporter's own are those of users.
        let Some(service) = object.labels().get(api::label::MCS_SERVICE_NAME).cloned() else { return };
        let all = object.endpoints.iter().flatten();
        let count = if is_there { all.clone().count() } else { 0 };
        let mark = endpoints::mark(all.flat_map(|endpoint| &endpoint.addresses).map(String::as_str));
        let change = |import: &mut Import| {
            import.slices.insert(object.name_any(), count);
            import.marks.extend(mark.map(|mark| (mark, Instant::now())));
        };
        self.take_in(object, is_there, Some((service, change)));
    }

    fn other<K: Resource<DynamicType = ()>>(&mut self, object: &K, is_there: bool) {
        self.take_in(object, is_there, None::<(String, fn(&mut Import))>);
    }

    fn ready(&self, service: &str) -> Option<Instant> {
        self.imports.get(service)?.ready
    }
}

impl Seen {
    pub(crate) fn watch(set: &Set, side: Side) -> Self {
        let mut watching = JoinSet::new();
        let mut imports = HashMap::new();
        for cluster in IMPORTERS {
            let (send, state) = watch::channel(State::default());
            let (of, ns) = (set.world.cluster(cluster), side.namespace());
            follow(&mut watching, of, ns, &send, State::import);
            follow(&mut watching, of, ns, &send, State::slice);
            follow(&mut watching, of, ns, &send, |state, service: &Service, is_there| {
                let is_derived = name::import_of(&service.name_any(), None).is_some();
                state.other(service, is_there && is_derived);
            });
            imports.insert(cluster, state);
        }
        let (send, records) = watch::channel(State::default());
        follow(&mut watching, set.world.leader(), side.area(), &send, State::other::<ResourceExport>);
        follow(&mut watching, set.world.leader(), side.area(), &send, State::other::<ResourceImport>);
        Self { imports, records, _watching: watching }
    }

    /// When the import of the Service could be used in that cluster.
    pub(crate) async fn ready(&self, cluster: &str, service: &str) -> Instant {
        self.becomes(&self.imports[cluster], |state| state.ready(service).is_some()).await;
        self.imports[cluster].borrow().ready(service).unwrap()
    }

    /// When the first and the last of so many imports could be used in that cluster.
    pub(crate) async fn all_ready(&self, cluster: &str, count: usize) -> (Instant, Instant) {
        self.becomes(&self.imports[cluster], |state| state.ready >= count).await;
        let state = self.imports[cluster].borrow();
        let ready = || state.imports.values().filter_map(|import| import.ready);
        (ready().min().unwrap(), ready().max().unwrap())
    }

    /// Waits until so many Services are merged, of whatever clusters.
    pub(crate) async fn merged(&self, count: usize) {
        let is_import = |(kind, _): &&(String, String)| kind == "ResourceImport";
        self.becomes(&self.records, |state| state.objects.iter().filter(is_import).count() >= count).await;
    }

    /// Waits until nothing is left, neither records nor imports.
    pub(crate) async fn all_gone(&self) -> Instant {
        for state in self.imports.values().chain([&self.records]) {
            self.becomes(state, |state| state.objects.is_empty()).await;
        }
        Instant::now()
    }

    /// When these or later endpoints of the Service were seen in that cluster.
    pub(crate) fn changed(&self, cluster: &str, service: &str, mark: u32) -> Option<Instant> {
        let state = self.imports[cluster].borrow();
        let marks = &state.imports.get(service)?.marks;
        marks.iter().find(|(seen, _)| *seen >= mark).map(|(_, at)| *at)
    }

    async fn becomes(&self, state: &watch::Receiver<State>, is: impl FnMut(&State) -> bool) {
        let mut state = state.clone();
        match timeout(meter::LIMIT, state.wait_for(is)).await {
            Ok(is) => drop(is.unwrap()),
            Err(_) => self.fails(),
        }
    }

    fn fails(&self) -> ! {
        let of = |(cluster, state): (&&str, &watch::Receiver<State>)| {
            let state = state.borrow();
            format!("{cluster}: {} objects, {} ready", state.objects.len(), state.ready)
        };
        let imports: Vec<_> = self.imports.iter().map(of).collect();
        panic!("not within {:?}: {imports:?}, {} records", meter::LIMIT, self.records.borrow().objects.len())
    }
}

/// Between two attempts of a watch.
const PAUSE: Duration = Duration::from_millis(100);

fn follow<K>(
    watching: &mut JoinSet<()>,
    cluster: &Cluster,
    namespace: &str,
    state: &watch::Sender<State>,
    take_in: impl Fn(&mut State, &K, bool) + Send + 'static,
) where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + 'static,
{
    let (objects, state): (Api<K>, _) = (cluster.api(namespace), state.clone());
    watching.spawn(async move {
        let mut events = watcher(objects, watcher::Config::default()).default_backoff().boxed();
        loop {
            match events.try_next().await {
                Ok(Some(watcher::Event::Apply(object) | watcher::Event::InitApply(object))) => {
                    state.send_modify(|state| take_in(state, &object, true));
                }
                Ok(Some(watcher::Event::Delete(object))) => {
                    state.send_modify(|state| take_in(state, &object, false));
                }
                Ok(Some(watcher::Event::Init | watcher::Event::InitDone)) => {}
                Ok(None) => return,
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    });
}
