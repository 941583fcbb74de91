import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { credentials, status } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { protoPath } from "grpc-health-check";

import { BenchClient, CannotServe, InsecureToken, Server, Unreachable } from "cbench-client";

import { bytes, served, until, Wire } from "./support/wire.js";

const echo = { name: "echo", process: (example) => example };
const folder = mkdtempSync(join(tmpdir(), "cbench-tls-"));
after(() => rmSync(folder, { recursive: true }));

/** Make a certificate that signs itself, for both ends. */
function selfSigned(name) {
  const [cert, key] = [join(folder, `${name}.pem`), join(folder, `${name}.key`)];
  const subject = ["-subj", `/CN=${name}`, "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
  const command = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key, "-out", cert];
  execFileSync("openssl", [...command, ...subject], { stdio: "ignore" });
  return { cert: readFileSync(cert), key: readFileSync(key) };
}

test("a token is required for everything but health", async (t) => {
  const { server, wire } = await served(t, echo, { token: "secret" });
  for (const client of [wire, new Wire(t, server.address, undefined, "guess")]) {
    const error = await client.process({}).catch((thrown) => thrown);
    assert.equal(error.code, status.UNAUTHENTICATED);
  }
  await new Wire(t, server.address, undefined, "secret").process({ a: 1 });
  const answer = await wire.raw("/grpc.health.v1.Health/Check", bytes([]));
  assert.deepEqual([...answer], [8, 1]);
});

test("TLS, and a certificate demanded of callers", async (t) => {
  const [ours, theirs] = [selfSigned("server"), selfSigned("caller")];
  const { server } = await served(t, echo, { tls: { ...ours, clientCa: theirs.cert } });
  const known = credentials.createSsl(ours.cert, theirs.key, theirs.cert);
  await new Wire(t, server.address, known).process({ a: 1 });
  for (const unknown of [credentials.createSsl(ours.cert), credentials.createInsecure()]) {
    const error = await new Wire(t, server.address, unknown).process({}).catch((thrown) => thrown);
    assert.equal(error.code, status.UNAVAILABLE);
  }
});

test("each cause of a connection that does not come about has its own sentence", async (t) => {
  const [ours, theirs] = [selfSigned("server"), selfSigned("caller")];
  const [plain, secret, mutual] = await Promise.all([
    served(t, echo),
    served(t, echo, { tls: ours }),
    served(t, echo, { tls: { ...ours, clientCa: theirs.cert } }),
  ]);
  const web = createServer((_, response) => response.end("a page"));
  t.after(() => web.close());
  await new Promise((resolve) => web.listen(0, "127.0.0.1", resolve));
  const told = async (address, connection) => {
    const client = new BenchClient(address, { timeoutMs: 10_000, ...connection });
    t.after(() => client.close());
    return client.get("r1").catch((error) => error);
  };
  const cases = [
    [secret, {}, /hangs up on a connection without TLS\. If it speaks TLS, pass tls: true/],
    [plain, { tls: true }, /does not speak TLS and this connection does\. Drop tls/],
    [secret, { tls: true }, /is not accepted: self.signed certificate\. Pass its authority as tls: \{ ca \}/],
    [secret, { tls: { ca: ours.cert, serverName: "other.example" } }, /is not accepted: .*altnames/],
    [mutual, { tls: { ca: ours.cert } }, /refused the TLS handshake \(.*certificate required\)/],
    [{ server: { address: `127.0.0.1:${web.address().port}` } }, {}, /it does not speak gRPC/],
    [{ server: { address: "no-such-host.invalid:1" } }, {}, /the host of no-such-host\.invalid:1 cannot be found/],
  ];
  for (const [{ server }, connection, sentence] of cases) {
    const error = await told(server.address, connection);
    assert.ok(error instanceof Unreachable, String(error));
    assert.match(error.message, sentence);
    assert.doesNotMatch(error.message, /Resolution note|routines/);
  }
});

test("a certificate that is none is refused in a sentence", () => {
  const tls = { cert: "no certificate", key: "no key" };
  assert.throws(() => new Server(echo, { tls }), CannotServe);
});

test("a token does not travel unencrypted over a network", () => {
  assert.throws(() => new BenchClient("bench.example.org:50051", { token: "secret" }), InsecureToken);
  new BenchClient("bench.example.org:50051", { token: "secret", tls: true }).close();
});

test("health is SERVING for each service, and NOT_SERVING to watchers while draining", async (t) => {
  const waiting = [];
  const { server, wire } = await served(t, { name: "slow", process: () => new Promise((resolve) => waiting.push(resolve)) });
  const service = loadSync(protoPath, { enums: String })["grpc.health.v1.Health"];
  const seen = [];
  const watch = wire.client.makeServerStreamRequest(
    service.Watch.path, service.Watch.requestSerialize, service.Watch.responseDeserialize, { service: "cbench.v1.System" }, {},
  );
  watch.on("data", ({ status: state }) => seen.push(state)).on("error", () => {});
  const check = (name) => new Promise((resolve) => {
    const { path, requestSerialize, responseDeserialize } = service.Check;
    wire.client.makeUnaryRequest(path, requestSerialize, responseDeserialize, { service: name }, (error, answer) => resolve(error?.code ?? answer.status));
  });
  assert.deepEqual(await Promise.all(["", "cbench.v1.System", "x.Y"].map(check)), ["SERVING", "SERVING", status.NOT_FOUND]);
  const call = wire.process({});
  await until(() => waiting.length === 1);
  const stopped = server.stop();
  await until(() => seen.length === 2);
  assert.deepEqual([seen, await check("")], [["SERVING", "NOT_SERVING"], "NOT_SERVING"]);
  waiting[0]({});
  await call;
  await stopped;
});
