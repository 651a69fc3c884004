// Load by memcached-elasticache, which follows an endpoint, until standard input ends; each line is a failure.
"use strict";

const {setTimeout: pause} = require("node:timers/promises");
const Memcached = require("memcached-elasticache");

const keys = Array.from({length: 100}, (_, number) => `key-${number}`);
const client = new Memcached(process.argv[2], {autoDiscoverInterval: 500, timeout: 5000});
let ended = false;
process.stdin.on("end", () => (ended = true)).resume();

const failed = (error) => error && console.log(String(error));
const done = (resolve) => (error) => resolve(failed(error));

client.on("autoDiscoverFailure", failed);
// Before it has a list, it takes the endpoint for a server.
client.once("autoDiscover", async () => {
  while (!ended) {
    await Promise.all(keys.map((key) => new Promise((resolve) => client.set(key, "value", 3600, done(resolve)))));
    await Promise.all(keys.map((key) => new Promise((resolve) => client.get(key, done(resolve)))));
    await pause(20);
  }
  process.exit();
});
