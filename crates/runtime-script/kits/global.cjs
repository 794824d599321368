// Loaded before a JavaScript process script: makes the global `skillz`, which costs nothing until it is used.
"use strict";

let skillz;
Object.defineProperty(globalThis, "skillz", {
  configurable: true,
  enumerable: false,
  get: () => (skillz ??= require("./skillz.cjs")),
  set: (value) => (skillz = value),
});
