// The official SDK against the stand-in: what we test with is the API that the
// SDK believes in. Prints one line a call; any surprise is an exit code.
import assert from 'node:assert/strict';
import Browserbase from '@browserbasehq/sdk';

const projectId = process.env.BROWSERBASE_PROJECT_ID;
const bb = new Browserbase({ maxRetries: 0 }); // key and address from the environment
const said = (what) => console.log(`sdk: ${what}`);

// Every field that the SDK says an answer has, and of the kind that it says.
const sessionShape = {
  id: 'string', createdAt: 'string', expiresAt: 'string', keepAlive: 'boolean', projectId: 'string', proxyBytes: 'number',
  region: 'string', startedAt: 'string', status: 'string', updatedAt: 'string',
};
const has = (value, shape) => {
  for (const [key, kind] of Object.entries(shape)) assert.equal(typeof value[key], kind, key);
};

const context = await bb.contexts.create({ projectId });
has(context, { id: 'string', cipherAlgorithm: 'string', initializationVectorSize: 'number', publicKey: 'string', uploadUrl: 'string' });
said('contexts.create');
const there = await bb.contexts.retrieve(context.id);
has(there, { id: 'string', createdAt: 'string', projectId: 'string', updatedAt: 'string' });
said('contexts.retrieve');

const made = await bb.sessions.create({
  projectId, region: 'eu-central-1', keepAlive: true, api_timeout: 120,
  userMetadata: { tapin: 'sdk', tapin_browser: 'ses_sdk-1', nested: { a: 'b' } },
  browserSettings: {
    context: { id: context.id, persist: true }, blockAds: true, solveCaptchas: false, recordSession: false, logSession: false,
    viewport: { width: 1280, height: 720 }, os: 'linux',
  },
});
has(made, { ...sessionShape, connectUrl: 'string', seleniumRemoteUrl: 'string', signingKey: 'string' });
assert.equal(made.status, 'RUNNING');
assert.equal(made.region, 'eu-central-1');
assert.equal(made.keepAlive, true);
assert.equal(made.contextId, context.id);
assert.equal(Math.round((Date.parse(made.expiresAt) - Date.parse(made.createdAt)) / 1000), 120);
assert.deepEqual(made.userMetadata.nested, { a: 'b' });
said('sessions.create');

const got = await bb.sessions.retrieve(made.id);
has(got, { ...sessionShape, connectUrl: 'string' });
said('sessions.retrieve');

for (const [query, n] of [
  [{ status: 'RUNNING', q: "user_metadata['tapin_browser']:'ses_sdk-1'" }, 1],
  [{ q: "user_metadata['nested']['a']:'b'" }, 1],
  [{ q: "user_metadata['tapin']:'nobody'" }, 0],
  [{ status: 'COMPLETED' }, 0],
]) {
  const all = await bb.sessions.list(query);
  assert.ok(Array.isArray(all));
  assert.equal(all.length, n, JSON.stringify(query));
  for (const one of all) {
    has(one, sessionShape);
    assert.equal(one.connectUrl, undefined); // a list tells no way in
  }
}
said('sessions.list');

// Somebody has to be in it before there is a tab to see.
const socket = new WebSocket(made.connectUrl);
await new Promise((resolve, reject) => { socket.onopen = resolve; socket.onerror = () => reject(new Error('no way in')); });
const views = await bb.sessions.debug(made.id);
has(views, { debuggerFullscreenUrl: 'string', debuggerUrl: 'string', wsUrl: 'string' });
assert.equal(views.pages.length, 1);
has(views.pages[0], { id: 'string', debuggerFullscreenUrl: 'string', debuggerUrl: 'string', faviconUrl: 'string', title: 'string', url: 'string' });
said('sessions.debug');

const sent = await bb.sessions.uploads.create(made.id, { file: new File(['142.50'], 'bill.txt') });
has(sent, { message: 'string' });
said('sessions.uploads.create');

const used = await bb.projects.usage(projectId);
has(used, { browserMinutes: 'number', proxyBytes: 'number' });
said('projects.usage');

has(await bb.sessions.update(made.id, { projectId, status: 'REQUEST_RELEASE' }), sessionShape);
for (let i = 0; (await bb.sessions.retrieve(made.id)).status === 'RUNNING'; i++) {
  assert.ok(i < 100, 'it never ends');
  await new Promise((resolve) => setTimeout(resolve, 100));
}
const over = await bb.sessions.retrieve(made.id);
assert.equal(over.status, 'COMPLETED');
assert.equal(typeof over.endedAt, 'string');
assert.equal(over.connectUrl, undefined);
said('sessions.update');

await bb.contexts.delete(context.id);
await assert.rejects(bb.contexts.retrieve(context.id), Browserbase.NotFoundError);
said('contexts.delete');

await assert.rejects(bb.sessions.retrieve('no-such-session'), Browserbase.NotFoundError);
await assert.rejects(new Browserbase({ apiKey: 'wrong', maxRetries: 0 }).sessions.list(), Browserbase.AuthenticationError);
await assert.rejects(bb.sessions.create({ projectId: 'somebody-elses' }), Browserbase.PermissionDeniedError);
said('errors');
socket.close();
