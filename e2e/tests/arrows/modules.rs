//! The modules of a crate, and which of them use which: read from the source with `syn`, tests left out.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use syn::{Attribute, Item, UseTree, visit::Visit};

/// Path of a module below the root of its crate.
pub(crate) type Module = Vec<String>;

/// The modules of one crate.
#[derive(Default)]
pub(crate) struct Crate {
    /// The file of each module.
    files: BTreeMap<Module, PathBuf>,
    /// What names mean in a module that were brought in by `use`: absolute paths.
    imported: BTreeMap<Module, BTreeMap<String, Vec<String>>>,
    /// Absolute paths that the code of a module names.
    named: Vec<(Module, Vec<String>)>,
}

/// One module uses another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Use {
    /// The file that uses.
    pub(crate) from: PathBuf,
    /// The file that is used.
    pub(crate) to: PathBuf,
}

impl Crate {
    /// Reads the crate whose root is this file.
    pub(crate) fn read(root: &Path) -> Self {
        let mut read = Self::default();
        let below = root.with_file_name("");
        read.file(root, &below, vec![]);
        read
    }

    /// Reads a module's file; its children are in `below`.
    fn file(&mut self, file: &Path, below: &Path, module: Module) {
        let text = fs::read_to_string(file).unwrap();
        let parsed = syn::parse_file(&text).unwrap();
        self.files.insert(module.clone(), file.to_owned());
        let mut children = BTreeSet::new();
        for item in &parsed.items {
            if let Item::Mod(child) = item
                && !is_test(&child.attrs)
                && child.content.is_none()
                // A file of elsewhere, which is read where it belongs.
                && !child.attrs.iter().any(|attr| attr.path().is_ident("path"))
            {
                let name = child.ident.to_string();
                let path = [module.clone(), vec![name.clone()]].concat();
                let (flat, nested) = (below.join(format!("{name}.rs")), below.join(&name).join("mod.rs"));
                let file = if flat.is_file() { flat } else { nested };
                self.file(&file, &below.join(&name), path);
                children.insert(name);
            }
        }
        let mut names =
            Names { module: &module, children: &children, imported: BTreeMap::new(), named: vec![] };
        parsed.items.iter().for_each(|item| names.visit_item(item));
        let Names { imported, named, .. } = names;
        self.named.extend(named.into_iter().map(|path| (module.clone(), path)));
        self.imported.insert(module, imported);
    }

    /// The module that a path leads to, through what other modules import under that name.
    fn target(&self, path: &[String], depth: u8) -> Module {
        let mut length = path.len();
        while !self.files.contains_key(&path[..length]) {
            length -= 1;
        }
        let (module, rest) = path.split_at(length);
        let imported = rest.first().and_then(|name| self.imported.get(module)?.get(name));
        match imported {
            Some(further) if depth > 0 => self.target(&[further, &rest[1..]].concat(), depth - 1),
            _ => module.to_vec(),
        }
    }

    /// Uses between children of one module, each child with all that is below it: by parent, user and used.
    fn uses(&self) -> BTreeMap<Module, BTreeMap<(String, String), Use>> {
        let mut uses = BTreeMap::<_, BTreeMap<_, _>>::new();
        for (from, path) in &self.named {
            let to = self.target(path, 8);
            let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            if let (Some(user), Some(used)) = (from.get(common), to.get(common)) {
                let witness = Use { from: self.files[from].clone(), to: self.files[&to].clone() };
                let siblings = uses.entry(from[..common].to_vec()).or_default();
                siblings.entry((user.clone(), used.clone())).or_insert(witness);
            }
        }
        uses
    }

    /// Whether there is such a module.
    pub(crate) fn has(&self, module: &[&str]) -> bool {
        self.files.keys().any(|known| known.iter().map(String::as_str).eq(module.iter().copied()))
    }

    /// A use of a module, or of what is below it, by another.
    pub(crate) fn uses_of(&self, to: &[&str], by: &[&str]) -> Option<Use> {
        let is_below = |module: &Module, top: &[&str]| {
            module.len() >= top.len() && module.iter().zip(top).all(|(a, b)| a == b)
        };
        let users = self.named.iter().filter(|(from, _)| is_below(from, by));
        users
            .map(|(from, path)| (from, self.target(path, 8)))
            .find(|(_, used)| is_below(used, to))
            .map(|(from, used)| Use { from: self.files[from].clone(), to: self.files[&used].clone() })
    }

    /// Uses that are part of a circle of siblings.
    pub(crate) fn circles(&self) -> Vec<Use> {
        let reaches = |uses: &BTreeMap<(String, String), Use>, from: &String, to: &String| {
            let (mut seen, mut next) = (BTreeSet::from([from.clone()]), vec![from.clone()]);
            while let Some(at) = next.pop() {
                let further = uses.keys().filter(|(user, _)| *user == at).map(|(_, used)| used.clone());
                next.extend(further.filter(|used| seen.insert(used.clone())).collect::<Vec<_>>());
            }
            seen.contains(to)
        };
        let mut circles = Vec::new();
        for uses in self.uses().values() {
            let back = uses.iter().filter(|((user, used), _)| reaches(uses, used, user));
            circles.extend(back.map(|(_, witness)| witness.clone()));
        }
        circles
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    let mut says_test = attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    says_test.any(|attribute| attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test")))
}

/// Collects the names in one module.
struct Names<'a> {
    module: &'a Module,
    children: &'a BTreeSet<String>,
    imported: BTreeMap<String, Vec<String>>,
    named: Vec<Vec<String>>,
}

impl Names<'_> {
    /// The path from the crate's root, if it leads into this crate.
    fn absolute(&self, path: &[String]) -> Option<Vec<String>> {
        let mut at = match path.first()?.as_str() {
            "crate" => vec![],
            "self" | "super" => self.module.clone(),
            child if self.children.contains(child) => [self.module.clone(), vec![child.to_owned()]].concat(),
            _ => return None,
        };
        at.extend(path[1..].iter().filter(|step| *step != "self").cloned());
        let ups = path.iter().take_while(|step| *step == "super").count();
        if ups > 0 {
            at = self.module[..self.module.len().checked_sub(ups)?].to_vec();
            at.extend(path[ups..].iter().cloned());
        }
        Some(at)
    }

    fn name(&mut self, path: &[String]) {
        if let Some(path) = self.absolute(path) {
            self.named.push(path);
        } else if let Some(known) = path.first().and_then(|first| self.imported.get(first)) {
            self.named.push([known, &path[1..]].concat());
        }
    }

    fn import(&mut self, before: &[String], tree: &UseTree) {
        match tree {
            UseTree::Path(path) => self.import(&[before, &[path.ident.to_string()]].concat(), &path.tree),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.import(before, tree)),
            UseTree::Glob(_) => self.name(before),
            UseTree::Name(name) => self.bring(before, &name.ident.to_string(), &name.ident.to_string()),
            UseTree::Rename(rename) => {
                self.bring(before, &rename.ident.to_string(), &rename.rename.to_string());
            }
        }
    }

    fn bring(&mut self, before: &[String], name: &str, known_as: &str) {
        let path = if name == "self" { before.to_vec() } else { [before, &[name.to_owned()]].concat() };
        let known_as =
            if known_as == "self" { path.last().cloned().unwrap_or_default() } else { known_as.to_owned() };
        self.name(&path);
        if let Some(absolute) = self.absolute(&path) {
            self.imported.insert(known_as, absolute);
        }
    }
}

impl<'ast> Visit<'ast> for Names<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Mod(module) => &module.attrs,
            Item::Fn(function) => &function.attrs,
            Item::Impl(block) => &block.attrs,
            Item::Use(import) => &import.attrs,
            _ => &vec![],
        };
        if !is_test(attributes) {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.import(&[], &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let steps: Vec<_> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.name(&steps);
        syn::visit::visit_path(self, path);
    }
}
