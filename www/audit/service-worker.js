/** Answers for the auditor's page from what was kept of this build. Every other request goes by untouched. */
const VERSION = "__VERSION__";
const FILES = __FILES__;
const CACHE = `remuda-audit-${VERSION}`;
const kept = new Set(FILES.map((file) => new URL(file, self.registration.scope).href));
const PAGE = new URL("audit.html", self.registration.scope).href;

self.addEventListener("install", (event) => {
  event.waitUntil(
    caches
      .open(CACHE)
      .then((cache) => cache.addAll(FILES.map((file) => new Request(file, { cache: "no-cache" }))))
      .then(() => self.skipWaiting()),
  );
});

self.addEventListener("activate", (event) => {
  const isOld = (name) => name.startsWith("remuda-audit-") && name !== CACHE;
  event.waitUntil(
    caches
      .keys()
      .then((names) => Promise.all(names.filter(isOld).map((name) => caches.delete(name))))
      .then(() => self.clients.claim()),
  );
});

self.addEventListener("fetch", (event) => {
  if (event.request.method !== "GET") return;
  const address = new URL(event.request.url);
  address.search = address.hash = "";
  if (!kept.has(address.href)) return;
  const fromCache = () => caches.open(CACHE).then((cache) => cache.match(address.href));
  // The page itself is asked for anew, so that another build is noticed; what it consists of has its content in its name.
  event.respondWith(address.href === PAGE ? fetch(event.request).catch(fromCache) : fromCache().then((found) => found ?? fetch(event.request)));
});
