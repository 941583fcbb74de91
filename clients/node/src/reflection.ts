/** Reflection: what is served, told to those who ask. */

import { createRequire } from "node:module";

import type {
  handleBidiStreamingCall,
  MethodDefinition,
  Server as GrpcServer,
  ServiceDefinition,
  UntypedServiceImplementation,
} from "@grpc/grpc-js";

import { descriptors } from "./gen/descriptors.js";

const PATHS = ["v1", "v1alpha"].map((version) => `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`);

interface Method {
  definition: MethodDefinition<unknown, unknown>;
  handle: handleBidiStreamingCall<unknown, unknown>;
}

/**
 * Answer questions about these services. The answers are made when the first one is asked: few
 * ask, and making them takes longer than all else that a server does before it listens.
 */
export function addReflection(server: GrpcServer, services: readonly string[]): void {
  let made: Map<string, Method> | undefined;
  for (const path of PATHS) {
    const method = (): Method => {
      made ??= methodsFor(services);
      const found = made.get(path);
      if (found === undefined) throw new Error(`@grpc/reflection does not have ${path}`);
      return found;
    };
    const definition: MethodDefinition<unknown, unknown> = {
      path,
      requestStream: true,
      responseStream: true,
      requestSerialize: (message) => method().definition.requestSerialize(message),
      requestDeserialize: (bytes) => method().definition.requestDeserialize(bytes),
      responseSerialize: (message) => method().definition.responseSerialize(message),
      responseDeserialize: (bytes) => method().definition.responseDeserialize(bytes),
    };
    const answer: Method["handle"] = (call) => { method().handle(call); };
    server.addService({ answer: definition }, { answer });
  }
}

function methodsFor(services: readonly string[]): Map<string, Method> {
  const load = createRequire(import.meta.url);
  const { ReflectionService } = load("@grpc/reflection") as typeof import("@grpc/reflection");
  const loader = load("@grpc/proto-loader") as typeof import("@grpc/proto-loader");
  const health = load("grpc-health-check") as typeof import("grpc-health-check");
  const protos = {
    ...loader.loadFileDescriptorSetFromBuffer(descriptors),
    ...loader.loadSync(health.protoPath),
  };
  const found = new Map<string, Method>();
  const collector = {
    addService(definitions: ServiceDefinition, implementations: UntypedServiceImplementation): void {
      for (const [name, definition] of Object.entries(definitions)) {
        found.set(definition.path, { definition, handle: implementations[name] as Method["handle"] });
      }
    },
  };
  const reflection = new ReflectionService(protos, { services: [...services] });
  reflection.addToServer(collector);
  return found;
}
