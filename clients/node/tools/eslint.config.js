import eslint from "@eslint/js";
import { defineConfig } from "eslint/config";
import tseslint from "typescript-eslint";

const NODE_GLOBALS = [
  "AbortController",
  "AbortSignal",
  "Buffer",
  "Event",
  "EventTarget",
  "clearTimeout",
  "console",
  "performance",
  "process",
  "setTimeout",
];

export default defineConfig(
  { ignores: ["**/dist/", "**/node_modules/", "src/gen/"] },
  eslint.configs.recommended,
  {
    files: ["src/**/*.ts", "test/types/*.ts"],
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      // Plain JavaScript passes what it likes, and messages show it as it shows itself.
      "@typescript-eslint/no-unnecessary-type-conversion": "off",
      "@typescript-eslint/no-base-to-string": "off",
      // `undefined | void` is what a method that returns nothing gives.
      "@typescript-eslint/no-invalid-void-type": "off",
      // An empty function is a listener that must be there and has nothing to do.
      "@typescript-eslint/no-empty-function": "off",
    },
  },
  {
    files: ["test/types/*.ts"],
    // Only the dataset knows what a field holds.
    rules: { "@typescript-eslint/no-unsafe-assignment": "off" },
  },
  {
    files: ["**/*.js"],
    languageOptions: { globals: Object.fromEntries(NODE_GLOBALS.map((name) => [name, "readonly"])) },
    rules: { "no-unused-vars": ["error", { ignoreRestSiblings: true }] },
  },
);
