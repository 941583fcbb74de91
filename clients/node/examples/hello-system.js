import { serve } from "cbench-client";

await serve({
  name: "first-thousand",
  version: "1",
  process: (example) => example.with({ context: example.context.slice(0, 1000) }),
});
