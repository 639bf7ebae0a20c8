// Counts the tokens of snapshots with OpenAI's o200k_base, and looks for every
// element that can be acted on: one that @playwright/mcp names must be there in
// tapin's too.
//   node tokens.mjs pages            the pages, as {name: html}
//   node tokens.mjs count < {page: {who: snapshot}}   {page: {elements, missing, tokens: {who: n}}}
import { encode } from 'gpt-tokenizer/encoding/o200k_base'
import { readFileSync } from 'node:fs'
import { pages } from './pages.mjs'

// What can be acted on, by name. Names are compared without what is only there
// to be seen once: space and case.
const acting = /^(button|link|textbox|searchbox|spinbutton|combobox|checkbox|radio|switch|tab|slider|option|menuitem)$/
const plain = s => s.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, ' ').trim()
const theirs = snapshot => [...snapshot.matchAll(/- (\w+) "((?:[^"\\]|\\.)*)"[^\n]*\[ref=/g)].filter(m => acting.test(m[1]) && m[1] !== 'option').map(m => plain(m[2]))
const ours = snapshot => [...snapshot.matchAll(/\[(?:f\d+)?e\d+\] ([a-z]+)[^:\n]*(?:: ([^\n]*?))?(?= \| |\n|$| \[e)/g)].filter(m => acting.test(m[1]) || m[1] === 'clickable').map(m => plain(m[2] ?? ''))

// lacking are names that are not there, each of ours counted once. Ours may go
// on with the field's value, and longest names choose first.
function lacking(wanted, have) {
  return wanted.filter(n => n).sort((a, b) => b.length - a.length).filter(n => {
    let i = have.indexOf(n)
    if (i < 0) i = have.findIndex(h => h.startsWith(n + ' '))
    if (i >= 0) have.splice(i, 1)
    return i < 0
  })
}

function count(seen) {
  const wanted = theirs(seen['playwright-mcp'])
  return {
    elements: wanted.length,
    missing: lacking(wanted, ours(seen['tapin-mcp'])),
    tokens: Object.fromEntries(Object.entries(seen).map(([who, text]) => [who, encode(text).length])),
  }
}

if (process.argv[2] === 'pages') console.log(JSON.stringify(pages))
else console.log(JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(readFileSync(0, 'utf8'))).map(([page, seen]) => [page, count(seen)]))))
