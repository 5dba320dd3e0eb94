// Drives the official TypeScript packages: lists tools, runs code with progress, reports one line of JSON.
//
//   node client_node.mjs client|sdk URL
//   node client_node.mjs client|sdk -- COMMAND...
//
// `client` is @modelcontextprotocol/client in automatic mode, `sdk` the older @modelcontextprotocol/sdk.
const CODE = "import time\nprint('hello from', 6 * 7)\ntime.sleep(0.5)\nprint('second')\n";
const [kind, ...rest] = process.argv.slice(2);
const command = rest[0] === '--' ? rest.slice(1) : null;
const progress = [];
const options = {onprogress: (p) => progress.push(p.progress), timeout: 180000, resetTimeoutOnProgress: true};

async function open() {
  const info = {name: 'prims-test', version: '1.0.0'};
  if (kind === 'client') {
    const {Client, StreamableHTTPClientTransport} = await import('@modelcontextprotocol/client');
    const {StdioClientTransport} = await import('@modelcontextprotocol/client/stdio');
    const client = new Client(info, {versionNegotiation: {mode: 'auto'}});
    await client.connect(command ? new StdioClientTransport({command: command[0], args: command.slice(1)})
                                 : new StreamableHTTPClientTransport(new URL(rest[0])));
    return {client, call: (args) => client.callTool({name: 'run_code', arguments: args}, options)};
  }
  const {Client} = await import('@modelcontextprotocol/sdk/client/index.js');
  const {StdioClientTransport} = await import('@modelcontextprotocol/sdk/client/stdio.js');
  const {StreamableHTTPClientTransport} = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
  const client = new Client(info);
  const transport = command ? new StdioClientTransport({command: command[0], args: command.slice(1)})
                            : new StreamableHTTPClientTransport(new URL(rest[0]));
  await client.connect(transport);
  const close = async () => {
    if (!command) await transport.terminateSession();
    await client.close();
  };
  return {client, close, call: (args) => client.callTool({name: 'run_code', arguments: args}, undefined, options),
          version: () => transport.protocolVersion};
}

const {client, call, close, version} = await open();
const tools = (await client.listTools()).tools.map((tool) => tool.name);
const first = await call({code: CODE});
const failed = await call({code: '1 / 0'});
const negotiated = version ? version() : client.getNegotiatedProtocolVersion?.();
console.log(JSON.stringify({tools, version: negotiated ?? null, result: first.structuredContent, failed: failed.structuredContent,
                            progress}));
await (close ? close() : client.close());
process.exit(0);
