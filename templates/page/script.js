// Replaces the parts of the page when a deployment or its node pool changes.
"use strict";
(() => {
  // The page of an error has no parts.
  if (!document.querySelector("[data-part]")) return;
  const own = document.querySelector("[data-name]");
  const pool = document.querySelector("[data-pool]");
  const live = document.getElementById("live");
  // Several changes at once are one load.
  const PAUSE = 300;
  // The wait after a failure, as in Retry-After of the server.
  const RETRY = 10000;
  // The time within which a load must end.
  const PATIENCE = 30000;
  const SHOWN = "Changes are shown as they occur.";
  // The entity tag of the content that is shown.
  let tag = document.querySelector("meta[name=entity-tag]").content;
  let events = null;
  let timer = null;
  let retry = null;
  let isLoading = false;

  const say = (text) => {
    if (live.textContent !== text) live.textContent = text;
  };

  const replace = (next) => {
    for (const part of document.querySelectorAll("[data-part]")) {
      const other = next.querySelector(`[data-part="${part.dataset.part}"]`);
      if (!other || other.outerHTML === part.outerHTML) continue;
      const focused = part.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
      const added = document.adoptNode(other);
      part.replaceWith(added);
      if (focused !== null) {
        const links = [...added.querySelectorAll("a[href]")];
        (links.find((link) => link.getAttribute("href") === focused) ?? document.getElementById("main")).focus();
      }
    }
  };

  const load = async () => {
    timer = null;
    if (document.hidden) return;
    if (isLoading) return schedule();
    isLoading = true;
    try {
      const response = await fetch(location.href, {
        cache: "no-store",
        redirect: "error",
        headers: { "If-None-Match": tag },
        signal: AbortSignal.timeout(PATIENCE),
      });
      // The deployment or the pool is gone: the page of the error says so.
      if (response.status === 404) return location.reload();
      if (response.status !== 304) {
        if (!response.ok) throw new Error(response.statusText);
        replace(new DOMParser().parseFromString(await response.text(), "text/html"));
        tag = response.headers.get("ETag");
      }
      if (events?.readyState === EventSource.OPEN) say(SHOWN);
    } catch {
      say("The page cannot be updated at the moment.");
      clearTimeout(retry);
      retry = setTimeout(schedule, RETRY);
    } finally {
      isLoading = false;
    }
  };

  const schedule = () => {
    timer ??= setTimeout(load, PAUSE);
  };

  const changed = (event) => {
    if (pool) return;
    const { namespace, name } = JSON.parse(event.data);
    if (!own || (own.dataset.namespace === namespace && own.dataset.name === name)) schedule();
  };

  const poolChanged = (event) => {
    // The list of all pools has an empty name.
    if (pool && ["", JSON.parse(event.data).name].includes(pool.dataset.pool)) schedule();
  };

  const follow = () => {
    if (events || document.hidden) return;
    const source = new EventSource("/api/v1/events");
    events = source;
    source.addEventListener("open", () => say(SHOWN));
    source.addEventListener("reset", schedule);
    source.addEventListener("changed", changed);
    source.addEventListener("deleted", changed);
    source.addEventListener("nodepool", poolChanged);
    source.addEventListener("error", () => {
      say("Changes are not shown at the moment.");
      // The browser connects again by itself, unless the server has refused the connection.
      if (source.readyState !== EventSource.CLOSED) return;
      events = null;
      setTimeout(follow, RETRY);
    });
  };

  // A browser opens at most six connections to a server. A hidden page holds none, so any number can be open.
  const leave = () => {
    events?.close();
    events = null;
    clearTimeout(retry);
  };

  document.addEventListener("visibilitychange", () => (document.hidden ? leave() : follow()));
  addEventListener("pagehide", leave);
  // A page that the browser kept is shown again with this event, too.
  addEventListener("pageshow", follow);
})();
