// Ask the search of a built site as its pages do: SITE QUERY..., then one JSON line a query, of the places found.
"use strict";
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const [site, ...queries] = process.argv.slice(2);
const workers = path.join(site, "assets", "javascripts", "workers");
const name = fs.readdirSync(workers).find((each) => each.startsWith("search.") && each.endsWith(".js"));
const RESULT = 3;

let handle;
let answered;
const context = {
  addEventListener: (_, listener) => { handle = listener; },
  console, importScripts() {}, performance, setTimeout, URL,
  postMessage: (message) => { if (message.type === RESULT) answered(message.data.items); },
};
context.self = context;
vm.createContext(context);
vm.runInContext(fs.readFileSync(path.join(workers, name), "utf8"), context);

class Worker {
  postMessage(message) { return handle({ data: message }); }
}
vm.runInNewContext(fs.readFileSync(path.join(site, "site", "search.js"), "utf8"), { Worker });

(async () => {
  const index = JSON.parse(fs.readFileSync(path.join(site, "search", "search_index.json"), "utf8"));
  const worker = new Worker();
  await worker.postMessage({ type: 0, data: { config: index.config, docs: index.docs, options: { suggest: false } } });
  for (const query of queries) {
    const found = new Promise((resolve) => { answered = resolve; });
    await worker.postMessage({ type: 2, data: query });
    console.log(JSON.stringify((await found).flat().map((each) => each.location)));
  }
})();
