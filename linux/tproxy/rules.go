// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package tproxy

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// tableName is that of our table of each family.
const tableName, chainName, outName = "sandpit", "traffic", "out"

// Where a header of IPv4 has its addresses.
const sourceFour, destinationFour = 12, 16

// Numbers of nf_tables that package unix does not have.
const (
	mangle = 0xffffff6a // priority -150

	reg = unix.NFT_REG_1

	tproxyFamily = 1 // NFTA_TPROXY_FAMILY
	tproxyPort   = 3 // NFTA_TPROXY_REG_PORT

	expressionName = 1 // NFTA_EXPR_NAME
	expressionData = 2 // NFTA_EXPR_DATA
)

func expression(name string, parts ...[]byte) []byte {
	return nested(unix.NFTA_LIST_ELEM, text(expressionName, name), nested(expressionData, parts...))
}

func value(kind uint16, b []byte) []byte { return nested(kind, attribute(unix.NFTA_DATA_VALUE, b)) }

// load takes bytes of the packet's header.
func load(offset, length uint32) []byte {
	return expression("payload", number(unix.NFTA_PAYLOAD_DREG, reg), number(unix.NFTA_PAYLOAD_BASE, unix.NFT_PAYLOAD_NETWORK_HEADER),
		number(unix.NFTA_PAYLOAD_OFFSET, offset), number(unix.NFTA_PAYLOAD_LEN, length))
}

// loadBehind takes bytes of the header behind that, of TCP or UDP.
func loadBehind(offset, length uint32) []byte {
	return expression("payload", number(unix.NFTA_PAYLOAD_DREG, reg), number(unix.NFTA_PAYLOAD_BASE, unix.NFT_PAYLOAD_TRANSPORT_HEADER),
		number(unix.NFTA_PAYLOAD_OFFSET, offset), number(unix.NFTA_PAYLOAD_LEN, length))
}

// loopback takes the number of an interface by a key of meta, and compares it with the loopback's.
func loopback(key, op uint32) []byte {
	return append(expression("meta", number(unix.NFTA_META_DREG, reg), number(unix.NFTA_META_KEY, key)), compare(op, order.AppendUint32(nil, 1)...)...)
}

// equal goes on where what is loaded begins with b.
func equal(b ...byte) []byte { return compare(unix.NFT_CMP_EQ, b...) }

func compare(op uint32, b ...byte) []byte {
	return expression("cmp", number(unix.NFTA_CMP_SREG, reg), number(unix.NFTA_CMP_OP, op), value(unix.NFTA_CMP_DATA, b))
}

// masked leaves some bits of what is loaded.
func masked(b ...byte) []byte {
	return expression("bitwise", number(unix.NFTA_BITWISE_SREG, reg), number(unix.NFTA_BITWISE_DREG, reg), number(unix.NFTA_BITWISE_LEN, uint32(len(b))), //nolint:gosec // four
		value(unix.NFTA_BITWISE_MASK, b), value(unix.NFTA_BITWISE_XOR, make([]byte, len(b))))
}

// accept has the packet go the usual way.
func accept() []byte { return decide(1) } // NF_ACCEPT

// drop has nobody get the packet.
func drop() []byte { return decide(0) } // NF_DROP

func decide(what uint32) []byte {
	const verdict, code = 2, 1 // NFTA_DATA_VERDICT, NFTA_VERDICT_CODE
	return expression("immediate", number(unix.NFTA_IMMEDIATE_DREG, unix.NFT_REG_VERDICT), nested(unix.NFTA_IMMEDIATE_DATA, nested(verdict, number(code, what))))
}

// protocol goes on where the packet is of a protocol.
func protocol(p byte) []byte {
	return append(expression("meta", number(unix.NFTA_META_DREG, reg), number(unix.NFTA_META_KEY, unix.NFT_META_L4PROTO)), equal(p)...)
}

// give gives the packet to the transparent socket of its protocol at a port, or to that of its connection.
func give(family, port uint16) []byte {
	return append(
		expression("immediate", number(unix.NFTA_IMMEDIATE_DREG, reg), value(unix.NFTA_IMMEDIATE_DATA, binary.BigEndian.AppendUint16(nil, port))),
		expression("tproxy", number(tproxyFamily, uint32(family)), number(tproxyPort, reg))...)
}

// steer sets the rules of a family, in place of earlier ones. own is where the namespace is reached over another interface, if it is.
func steer(family uint8, port uint16, own netip.AddrPort) error {
	return commit(func(m *batch) {
		table := text(unix.NFTA_TABLE_NAME, tableName)
		m.add(unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE, family, table) // so that there is one to delete
		m.add(unix.NFT_MSG_DELTABLE, 0, family, table)
		m.add(unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE, family, table)
		chain := func(name string, hook, priority uint32) (rule func(parts ...[]byte)) {
			m.add(unix.NFT_MSG_NEWCHAIN, unix.NLM_F_CREATE, family, text(unix.NFTA_CHAIN_TABLE, tableName), text(unix.NFTA_CHAIN_NAME, name),
				nested(unix.NFTA_CHAIN_HOOK, number(unix.NFTA_HOOK_HOOKNUM, hook), number(unix.NFTA_HOOK_PRIORITY, priority)), text(unix.NFTA_CHAIN_TYPE, "filter"))
			return func(parts ...[]byte) {
				m.add(unix.NFT_MSG_NEWRULE, unix.NLM_F_CREATE|unix.NLM_F_APPEND, family, text(unix.NFTA_RULE_TABLE, tableName), text(unix.NFTA_RULE_CHAIN, name),
					nested(unix.NFTA_RULE_EXPRESSIONS, parts...))
			}
		}
		if own.IsValid() {
			onlyAnswers(chain(outName, unix.NF_INET_LOCAL_OUT, 0), family, own)
		}
		rule := chain(chainName, unix.NF_INET_PRE_ROUTING, mangle)
		rule(loopback(unix.NFT_META_IIF, unix.NFT_CMP_NEQ), accept())
		if own.IsValid() && family == unix.AF_INET {
			rule(load(destinationFour, 4), equal(own.Addr().AsSlice()...), accept())
		}
		if family == unix.AF_INET {
			rule(load(destinationFour, 1), equal(127), accept())                                  // the loopback's
			rule(load(destinationFour, 4), masked(0xf0, 0, 0, 0), equal(0xe0, 0, 0, 0), accept()) // groups
			rule(load(destinationFour, 4), equal(255, 255, 255, 255), accept())
		} else {
			const destination = 24
			rule(load(destination, 16), equal(append(make([]byte, 15), 1)...), accept())
			rule(load(destination, 1), equal(0xff), accept())
		}
		for _, p := range []byte{unix.IPPROTO_TCP, unix.IPPROTO_UDP} {
			rule(protocol(p), give(uint16(family), port))
		}
	})
}

// onlyAnswers has nothing be sent over other interfaces than the loopback, but by TCP from own, and no connection be begun there.
func onlyAnswers(rule func(parts ...[]byte), family uint8, own netip.AddrPort) {
	const flags, syn, ack = 13, 2, 16 // in the header of TCP
	rule(loopback(unix.NFT_META_OIF, unix.NFT_CMP_EQ), accept())
	if family == unix.AF_INET {
		rule(load(sourceFour, 4), equal(own.Addr().AsSlice()...), protocol(unix.IPPROTO_TCP),
			loadBehind(0, 2), equal(binary.BigEndian.AppendUint16(nil, own.Port())...),
			loadBehind(flags, 1), masked(syn|ack), compare(unix.NFT_CMP_NEQ, syn), accept())
	}
	rule(drop())
}
