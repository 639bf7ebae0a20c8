// A login hand-off over telegram-test-api: it knows no sendPhoto, so the picture
// is refused, and the message arrives as text with the link; then "type:", "done".
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";

const TelegramServer = createRequire(import.meta.url)("telegram-test-api");
const Server = TelegramServer.TelegramServer ?? TelegramServer.default ?? TelegramServer;
const [program, home] = process.argv.slice(2);
const token = "8000000001:AAFakeFakeFakeFakeFakeFakeFakeFake00";
const owner = 4711;

const free = () => new Promise((resolve) => {
  const s = createServer().listen(0, "127.0.0.1", () => {
    const { port } = s.address();
    s.close(() => resolve(port));
  });
});

let logins = 0;
const site = createServer((req, res) => {
  res.setHeader("Content-Type", "text/html");
  if (req.method === "POST") {
    let body = "";
    req.on("data", (d) => { body += d; }).on("end", () => {
      if (new URLSearchParams(body).get("password") === "My Secret 1") logins++;
      res.end("<!doctype html><title>Dashboard</title>Welcome");
    });
    return;
  }
  res.end("<!doctype html><title>Sign in</title><form method=post><input name=password type=password autofocus></form>");
}).listen(0, "127.0.0.1");
await new Promise((r) => site.once("listening", r));

const bot = new Server({ port: await free(), host: "127.0.0.1" });
await bot.start();
const person = bot.getClient(token, { userId: owner, chatId: owner, firstName: "Robin" });

const env = { ...process.env, TAPIN_HOME: home, TELEGRAM_BOT_TOKEN: token, TAPIN_LISTEN_CONTROL: "127.0.0.1:0", TAPIN_LISTEN_PUBLIC: "127.0.0.1:0" };
execFileSync(program, ["up", "--background", "--no-check", "--allow-private", "--set", `telegram.api_url=${bot.config.apiURL}`, "--set", `telegram.owners=[${owner}]`], { env, stdio: "inherit" });
const at = `http://${readFileSync(`${home}/control.addr`, "utf8").trim()}`;
async function call(who, path, body) {
  const res = await fetch(at + path, {
    method: body ? "POST" : "GET", body: body && JSON.stringify(body),
    headers: { Authorization: `Bearer ${readFileSync(`${home}/${who}.token`, "utf8").trim()}`, "Content-Type": "application/json" },
  });
  const said = await res.json();
  if (!res.ok) throw new Error(`${path}: ${JSON.stringify(said)}`);
  return said;
}

async function until(what, look) {
  for (const end = Date.now() + 20_000; Date.now() < end;) {
    const found = await look();
    if (found) { console.log(`ok  ${what}`); return found; }
    await new Promise((r) => setTimeout(r, 50));
  }
  throw new Error(`it never came: ${what}\n${JSON.stringify(bot.storage.botMessages.map((m) => m.message), null, 1)}\n${readFileSync(`${home}/logs/daemon.log`, "utf8").slice(-3000)}`);
}
const said = (words) => bot.storage.botMessages.find((m) => m.message.text?.includes(words));

try {
  await call("agent", "/session/start", { url: `http://127.0.0.1:${site.address().port}/`, screenshot: false });
  const { handoff_id: id } = await call("agent", "/handoff/start", { reason: "login", task: "pay the bill" });
  const asked = await until("the hand-off arrives as text, with the link", () => said("I need you to log in"));
  if (!/\/live\/lnk_\w+#t=/.test(asked.message.text)) throw new Error(`there is no link in ${asked.message.text}`);
  await person.sendMessage(person.makeMessage("type: My Secret 1"));
  await until("the text is typed, and that is said", () => said("Typed 11 characters into a password field"));
  await until("the text is gone from the chat", () => !JSON.stringify(bot.getUpdatesHistory(token)).includes("My Secret 1"));
  await call("owner", "/session/press", { key: "Enter", screenshot: false });
  await until("the site has the password", () => logins === 1);
  await person.sendMessage(person.makeMessage("done"));
  await until("the agent has the browser back", async () => (await call("agent", `/handoff/${id}?wait_ms=1000`)).status === "FINISHED");
  console.log("telegram: a login hand-off works over telegram-test-api");
} finally {
  await bot.stop().catch(() => {});
  site.close();
  site.closeAllConnections();
}
