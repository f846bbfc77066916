// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kernel_test

import (
	"strings"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/kernel"
)

func TestJavaScriptCellsShareTheirNames(t *testing.T) {
	t.Parallel()
	b := open(t, kernel.JavaScript)
	b.want(
		"let a = 1; const b = 2; var c = 3; function f(x) { return x + a }; class X { y = 1 }",
		"a + b + c + f(1) → 8",
		"let a = 10; const b = 20; class X { y = 2 }", // again
		"[a, b, f(1), new X()] → [ 10, 20, 11, X { y: 2 } ]",
		"undefined → ",
		"null → null",
		"'text' → 'text'",
		"({a: 1, b: [1, {c: 2}]}) → { a: 1, b: [ 1, { c: 2 } ] }",
		"-0 → -0",
		"10n ** 20n → 100000000000000000000n",
		"Symbol('s') → Symbol(s)",
		"new Map([[1, 2]]) → Map(1) { 1 => 2 }",
		"await new Promise(r => setTimeout(() => r(7), 2)) → 7",
		"const d = await Promise.resolve(5)",
		"d → 5",
		"for await (const x of [1, 2]) { a += x }; a → 13",
		"require('path').basename('/a/b') → 'b'",
		"[] instanceof Array && globalThis === global → true",
		"typeof process.argv → 'object'",
		"// nothing",
		"",
		"`a${`b${1}`}` → 'ab1'",
	)
	if r := b.fail("b = 3"); r.Error.Name != "TypeError" {
		t.Errorf("a constant was assigned to: %+v", r.Error)
	}
}

func TestJavaScriptImports(t *testing.T) {
	t.Parallel()
	b := open(t, kernel.JavaScript)
	b.want(
		"import fs, { readFileSync as read, existsSync } from 'node:fs';\nimport * as path from \"path\"\nimport 'os'\ntypeof fs.readFileSync + typeof read + existsSync('/') + path.sep → 'functionfunctiontrue/'",
		"fs.writeFileSync('m.mjs', 'export const v = 1; export default 2'); fs.writeFileSync('d.json', '{\"k\": 3}'); 0 → 0",
		"import two, {\n  v, // a comment\n} from './m.mjs'\n[two, v] → [ 2, 1 ]",
		"(await import('./m.mjs')).v → 1",
		"import data from './d.json' with { type: 'json' }; data.k → 3",
		"const s = `\nimport x from 'nope'\n${'import(' + (() => { return 1 })()}`; s.length → 30",
		"/import (x)/.test('import x') && 'import(1)'.length → 9",
		"export const e = 4; e → 4",
		"// import y from 'nope'\n/* import z from 'nope' */ 1 / 2 / 1 → 0.5",
		"({import: 1}).import → 1",
	)
	if r := b.fail("import { nope } from 'fs'"); !strings.Contains(r.Error.Value, "'nope'") || r.Error.Name != "SyntaxError" {
		t.Errorf("%+v", r.Error)
	}
	if r := b.fail("import x from 'no-such-package'"); !strings.Contains(r.Error.Value, "no-such-package") {
		t.Errorf("%+v", r.Error)
	}
}

func TestJavaScriptOutputKeepsItsOrderAndPurity(t *testing.T) {
	t.Parallel()
	b := open(t, kernel.JavaScript)
	r := b.run(`console.log('a', {x: 1}); process.stdout.write('b'); process.stdout.write(Buffer.from([255, 0, 31]));
require('fs').writeSync(1, 'c\n'); require('child_process').spawnSync('echo', ['d'], {stdio: 'inherit'});
require('child_process').execFileSync('cat', {stdio: ['inherit', 'inherit', 'inherit']}); console.error('e'); console.log('x'.repeat(3000000)); undefined`)
	if want := "a { x: 1 }\nb\xff\x00\x1fc\nd\n" + strings.Repeat("x", 3000000) + "\n"; r.out != want || r.err != "e\n" {
		t.Errorf("stdout is %.100q, stderr %q", r.out, r.err)
	}
	// What a timer says later belongs to whatever runs then.
	b.run("var said; const until = new Promise(r => said = r); setTimeout(() => { console.log('late'); said() }, 1000); 0")
	if r := b.run("await until; 0"); r.out != "late\n" {
		t.Errorf("%q", r.out)
	}
}

func TestJavaScriptErrors(t *testing.T) {
	t.Parallel()
	b := open(t, kernel.JavaScript)
	b.run("let kept = 1; function f(x) {\n  return x.y.z\n}")
	r := b.fail("let q = 1\nf({})")
	if r.Error.Name != "TypeError" || !strings.Contains(r.trace(), "at f (cell-1.js:2:") || !strings.Contains(r.trace(), "at cell-2.js:2:1") || strings.Contains(r.trace(), "node:inspector") {
		t.Errorf("%+v\n%s", r.Error, r.trace())
	}
	if r := b.fail("let x = 1;\nlet y = ;"); r.Error.Name != "SyntaxError" || !strings.Contains(r.trace(), "cell-3.js:2\nlet y = ;\n        ^") {
		t.Errorf("%+v\n%s", r.Error, r.trace())
	}
	if r := b.fail("throw 'text'"); r.Error.Name != "string" || r.Error.Value != "'text'" {
		t.Errorf("%+v", r.Error)
	}
	if r := b.fail("throw null"); r.Error.Name != "null" {
		t.Errorf("%+v", r.Error)
	}
	if r := b.fail("await Promise.reject(new RangeError('no', {cause: new Error('why')}))"); r.Error.Name != "RangeError" || !strings.Contains(r.trace(), "why") {
		t.Errorf("%+v", r.Error)
	}
	if r := b.fail("process.exit(3)"); r.Error.Name != "Exit" || r.Error.Value != "3" {
		t.Errorf("%+v", r.Error)
	}
	if r := b.fail("setTimeout(() => process.exit(4), 1); await new Promise(() => {})"); r.Error.Name != "Exit" || r.Error.Value != "4" {
		t.Errorf("%+v", r.Error)
	}
	if r := b.run("Promise.reject(new Error('lost')); setTimeout(() => { throw new Error('thrown') }, 0); await new Promise(r => setTimeout(r, 20)); 0"); !strings.Contains(r.err, "Uncaught Error: lost") || !strings.Contains(r.err, "Uncaught Error: thrown") {
		t.Errorf("stderr is %q", r.err)
	}
	b.fail("function deep() { return deep() + 1 }; deep()")
	b.want("kept → 1")
}

func TestJavaScriptInterruptKeepsTheNames(t *testing.T) {
	t.Parallel()
	b := open(t, kernel.JavaScript)
	b.run("let n = 0")
	for _, code := range []string{
		"while (true) {}", // at once
		"n++; console.log('GO'); while (true) {}",
		"n++; console.log('GO'); await new Promise(() => {})",
		"n++; require('child_process').spawnSync('sh', ['-c', 'echo GO; exec sleep 100'], {stdio: 'inherit'}); while (true) {}",
		"n++; console.log('GO'); for (;;) await new Promise(r => setTimeout(r, 1))",
	} {
		r := b.interrupt(code)
		if r.End != kernel.Interrupted || r.Error == nil || r.Error.Name != "Interrupt" {
			t.Errorf("%q ended as %s: %+v %s", code, r.End, r.Error, r.err)
		}
	}
	b.want("n → 4")
}

func TestJavaScriptInACallbackIsEndedToo(t *testing.T) {
	t.Parallel()
	b := open(t, kernel.JavaScript)
	b.run("let n = 1")
	if r := b.interrupt("console.log('GO'); await 0; while (true) {}"); r.End != kernel.Interrupted {
		t.Errorf("after an await: %+v", r.Outcome)
	}
	b.want("n → 1")
	// Node itself may not survive this one; the cell ends all the same.
	if r := b.interrupt("setTimeout(() => { console.log('GO'); while (true) {} }); await new Promise(() => {})"); r.End != kernel.Interrupted && r.End != kernel.Ended {
		t.Errorf("in a timer: %+v", r.Outcome)
	}
}

func TestJavaScriptShowsRichForms(t *testing.T) {
	t.Parallel()
	b := open(t, kernel.JavaScript)
	r := b.run(`await display({[Symbol.for('Jupyter.display')]: () => ({'text/html': '<b>', 'application/json': {a: 1}, 'image/png': Buffer.from('\x89PNG\r\n\x1a\nrest', 'latin1')})}, 5);
display.raw({'text/markdown': '*m*'}); ({[Symbol.for('Jupyter.display')]: async () => ({'text/plain': 'p'})})`)
	if len(r.Results) != 4 || r.Results[0].HTML != "<b>" || string(r.Results[0].JSON) != `{"a":1}` || len(r.Results[0].PNG) != 12 ||
		r.Results[1].Text != "5" || r.Results[2].Markdown != "*m*" || r.value() != "p" {
		t.Errorf("%+v", r.Results)
	}
	if r := b.run("for (let i = 0; i < 120; i++) await display(i)"); len(r.Results) != kernel.MaxResults || r.Dropped != 20 {
		t.Errorf("%d results, %d dropped", len(r.Results), r.Dropped)
	}
	if r := b.run("'é'.repeat(3000000)"); !r.Results[0].TextCut || len(r.Results[0].Text) > 2<<20 {
		t.Errorf("cut %v, %d bytes", r.Results[0].TextCut, len(r.Results[0].Text))
	}
	r = b.cell(kernel.Cell{Code: "process.env.ONCE + require('child_process').execSync('echo $ONCE')", Env: map[string]string{"ONCE": "1"}})
	if r.value() != `'11\n'` {
		t.Errorf("%q", r.value())
	}
	b.want("process.env.ONCE → ")
}

func TestTypeScript(t *testing.T) {
	t.Parallel()
	p := launch(t, kernel.Command(kernel.TypeScript))
	s, err := kernel.Start(t.Context(), kernel.TypeScript, p, kernel.Options{})
	if fault.Is(err, fault.Unsupported) {
		if !strings.Contains(fault.As(err).Remedy, "22.13") {
			t.Errorf("the refusal has the remedy %q", fault.As(err).Remedy)
		}
		t.Skip("node is too old to take types out, or not there: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	b := &box{s, t, p}
	b.want(
		"interface P { x: number }\nconst p: P = { x: 1 };\nfunction f<T>(a: T): T { return a }",
		"f<number>(p.x) as number → 1",
		"enum Color { Red, Green = 5 }\nColor.Green → 5",
		"const p: P = { x: 2 }; p.x satisfies number → 2",
		"import type { Stats } from 'fs'; import { existsSync, type PathLike } from 'fs'; existsSync('/') → true",
		"const v: number = await Promise.resolve<number>(3); v! → 3",
	)
	if r := b.fail("let a: number = 1;\nlet b: = 2"); r.Error.Name != "SyntaxError" {
		t.Errorf("%+v", r.Error)
	}
	if r := b.fail("type A = 1;\n\nnull.x"); !strings.Contains(r.trace(), "cell-8.ts:3:") {
		t.Errorf("%s", r.trace())
	}
	if r := b.run("0"); r.err != "" {
		t.Errorf("a warning: %q", r.err)
	}
}
