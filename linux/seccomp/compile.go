// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package seccomp

import "fmt"

// span is a run of numbers, from start to where the next one starts, with one
// decision.
type span struct {
	start  uint32
	target label
}

// compile makes the program: check the architecture, search the number, then
// look at arguments where a rule has conditions.
func compile(p policy) ([]byte, error) {
	a := &assembler{}
	spans := a.spans(p)
	top := a.search(spans)
	a.jumpTo(top)
	a.emit(instruction{code: codeLoad, k: offsetNr})
	// The only way out that is not the tree's: emitted in place, before the
	// load, so that the load directly follows the comparison.
	a.emit(instruction{code: codeRet, k: retKillProcess})
	a.emit(instruction{code: codeJEQ, k: p.audit, jt: 1})
	a.emit(instruction{code: codeLoad, k: offsetArch})
	if n := len(a.reversed); n > maxInstructions {
		return nil, fmt.Errorf("the filter has %d instructions, the kernel takes %d", n, maxInstructions)
	}
	return a.bytes(), nil
}

// jumpTo makes the next instruction that is emitted fall through to target.
func (a *assembler) jumpTo(target label) {
	if int(target) != len(a.reversed)-1 {
		a.emit(instruction{code: codeJump, k: uint32(len(a.reversed) - int(target) - 1)})
	}
}

// spans emits the returns and the checks of arguments, and gives the whole
// number line in order, neighbours with equal decisions joined.
func (a *assembler) spans(p policy) []span {
	var out []span
	add := func(nr uint32, target label) {
		if len(out) == 0 || out[len(out)-1].target != target {
			out = append(out, span{nr, target})
		}
	}
	// The common ones last in the program, in reach of everything.
	a.ret(p.other)
	a.ret(retAllow)
	for nr := uint32(0); nr <= p.ceiling; nr++ {
		if r, ok := p.rules[nr]; ok {
			add(nr, a.rule(r))
		} else {
			add(nr, a.ret(p.other))
		}
	}
	add(p.ceiling+1, a.ret(retErrno(enosys)))
	return out
}

// rule emits the decision of one call.
func (a *assembler) rule(r rule) label {
	pass, fail := a.ret(r.pass), a.ret(r.fail)
	if r.otherwise != nil {
		fail = a.rule(*r.otherwise)
	}
	if len(r.clauses) == 0 {
		return pass
	}
	if l, ok := a.oneOf(r.clauses, pass, fail); ok {
		return l
	}
	next := fail
	for i := len(r.clauses) - 1; i >= 0; i-- {
		c := r.clauses[i]
		yes := pass
		for j := len(c) - 1; j >= 0; j-- {
			yes = a.condition(c[j], yes, next)
		}
		next = yes
	}
	return next
}

// oneOf emits "the argument is one of these values" with one look at the upper
// half, if that is what the clauses say.
func (a *assembler) oneOf(clauses []clause, pass, fail label) (label, bool) {
	first := clauses[0][0]
	for _, c := range clauses {
		if len(c) != 1 || c[0].op != opEQ || c[0].arg != first.arg || c[0].mask != first.mask ||
			c[0].value>>32 != first.value>>32 || c[0].mask&lowWord != lowWord {
			return 0, false
		}
	}
	next := fail
	for i := len(clauses) - 1; i >= 0; i-- {
		next = a.low(clauses[i][0], codeJEQ, pass, next)
	}
	return a.high(first, codeJEQ, next, fail), true
}

// condition emits one comparison of up to 64 bits.
func (a *assembler) condition(c condition, yes, no label) label {
	switch c.op {
	case opNE:
		c.op = opEQ
		return a.condition(c, no, yes)
	case opLT:
		c.op = opGE
		return a.condition(c, no, yes)
	case opLE:
		c.op = opGT
		return a.condition(c, no, yes)
	case opGT, opGE:
		// Equal upper halves leave it to the lower ones; a larger one decides.
		code := uint16(codeJGT)
		if c.op == opGE {
			code = codeJGE
		}
		equal := a.high(c, codeJEQ, a.low(c, code, yes, no), no)
		return a.high(c, codeJGT, yes, equal)
	}
	return a.high(c, codeJEQ, a.low(c, codeJEQ, yes, no), no)
}

// low compares the lower half of the argument, high the upper one. A half of
// which the mask leaves nothing is zero, and the answer is known.
func (a *assembler) low(c condition, code uint16, yes, no label) label {
	return a.half(offsetArgs+8*uint32(c.arg), uint32(c.mask), code, uint32(c.value), yes, no)
}

func (a *assembler) high(c condition, code uint16, yes, no label) label {
	return a.half(offsetArgs+8*uint32(c.arg)+4, uint32(c.mask>>32), code, uint32(c.value>>32), yes, no)
}

func (a *assembler) half(offset, mask uint32, code uint16, value uint32, yes, no label) label {
	if mask != 0 {
		return a.test(offset, mask, code, value, yes, no)
	}
	if code == codeJEQ && value == 0 || code == codeJGE && value == 0 {
		return yes
	}
	return no
}

// search emits a tree over the spans that leaves the number in A.
func (a *assembler) search(spans []span) label {
	if len(spans) == 1 {
		return spans[0].target
	}
	// A single number in a run of one other decision is one comparison.
	if len(spans) == 3 && spans[0].target == spans[2].target && spans[2].start == spans[1].start+1 {
		return a.branch(codeJEQ, spans[1].start, spans[1].target, spans[0].target)
	}
	middle := len(spans) / 2
	right := a.search(spans[middle:])
	left := a.search(spans[:middle])
	return a.branch(codeJGE, spans[middle].start, right, left)
}
