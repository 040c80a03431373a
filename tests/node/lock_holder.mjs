//! A program that holds a lock until it is killed: `node lock_holder.mjs FOLDER NAME`.

import { FileLocks } from "../../www/dist/node/file_locks.js";

const [folder, name] = process.argv.slice(2);
await new FileLocks(() => folder).request(name, () => {
  process.stdout.write("held\n");
  return new Promise(() => {});
});
