import { defineConfig } from "vite";

// One script and one style, which Python puts into the page; no source maps, no
// names with digests, so that the same source always gives the same bytes.
export default defineConfig({
  build: {
    outDir: "../../cbench_server/reports/assets",
    emptyOutDir: true,
    target: "es2022",
    // These know light-dark(), which then need not be spelled out for older ones.
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    reportCompressedSize: false,
    // What is bundled wants its notice to travel along.
    license: { fileName: "licenses.md" },
    lib: {
      entry: "src/main.tsx",
      formats: ["iife"],
      name: "cbenchReport",
      fileName: () => "report.js",
      cssFileName: "report",
    },
  },
  define: { "process.env.NODE_ENV": '"production"' },
});
