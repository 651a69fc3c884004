// The words of a search as the index has them: without the dashes that a flag begins with.
//
// The search takes a dash before a word for "not this word", and two for an error: `--finalizer` found nothing. What is
// typed goes to a worker as {type: 2, data: TEXT}; anything else goes as it is.
"use strict";

const QUERY = 2;
const post = Worker.prototype.postMessage;

Worker.prototype.postMessage = function (message, ...rest) {
  const asked = message && message.type === QUERY && typeof message.data === "string";
  const plain = asked ? { ...message, data: message.data.replace(/(^|\s)--+(?=\S)/g, "$1") } : message;
  return post.call(this, plain, ...rest);
};
