// Ping and echo with the official TypeScript SDK: `server.mjs stdio`, or `server.mjs http` (stateless, JSON answers).

import { createServer } from "node:http";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";

function newServer() {
  const server = new McpServer({ name: "bench-server", version: "0.1.0" });
  server.registerTool("echo", { description: "Returns its text", inputSchema: { text: z.string() } }, ({ text }) => ({
    content: [{ type: "text", text }],
  }));
  return server;
}

// As the SDK's own stateless example does: a server and a transport for each request.
async function answer(request, response) {
  const server = newServer();
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: true });
  response.on("close", () => {
    transport.close();
    server.close();
  });
  await server.connect(transport);
  await transport.handleRequest(request, response);
}

if (process.argv[2] === "http") {
  const listener = createServer({ noDelay: true }, answer);
  listener.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${listener.address().port}/mcp`));
} else {
  await newServer().connect(new StdioServerTransport());
}
