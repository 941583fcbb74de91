// The public surface: every exported name with its declaration, as the TypeScript compiler has it.

import { URL, fileURLToPath } from "node:url";

import ts from "typescript";

const entry = fileURLToPath(new URL("../dist/index.d.ts", import.meta.url));
const program = ts.createProgram([entry], { module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext, target: ts.ScriptTarget.ES2023 });
const checker = program.getTypeChecker();
const file = program.getSourceFile(entry);

const found = checker.getExportsOfModule(checker.getSymbolAtLocation(file)).map((symbol) => {
  const real = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
  const texts = real.declarations.map((declaration) => {
    const source = declaration.getSourceFile().text;
    return source.slice(declaration.getFullStart(), declaration.end).trim();
  });
  // What is private has no type, only a name.
  return [symbol.name, texts.join("\n").replace(/^ *(#private|private .*);\n/gm, "").replace(/^\/\/.*\n/gm, "")];
});
found.sort(([one], [other]) => (one < other ? -1 : 1));
for (const [name, text] of found) console.log(`## ${name}\n\n\`\`\`ts\n${text}\n\`\`\`\n`);
