#!/bin/sh
# Says whether sandboxes can be used from here: the program, the server, the token, an image, a command.
# Exit status 0: all is well; 1: what is printed last is not, with the next step.
set -u
sandpit=${SANDPIT:-sandpit}

fail() {
	echo "FAILED: $1"
	echo "next: $2"
	exit 1
}

command -v "$sandpit" >/dev/null 2>&1 || fail "the program sandpit is not there" "install it, or set SANDPIT to where it is"
echo "ok: the program $("$sandpit" version 2>/dev/null | head -n 1)"

why=$("$sandpit" whoami 2>&1) || fail "the server, or the token: $why" "start a server with: sandpit up; or sign in to one with: sandpit login"
echo "ok: the server answers, and the token is good"

images=$("$sandpit" image ls -q 2>&1) || fail "the images cannot be listed: $images" "look at the server's log"
[ -n "$images" ] || fail "there is no image" "build one with: sandpit image build python"
echo "ok: there are images"

said=$("$sandpit" run --no-stdin -- echo it-runs 2>&1) || fail "a command does not run: $said" "see sandpit doctor on the server's machine"
case $said in
*it-runs*) echo "ok: a command runs" ;;
*) fail "a command printed something else: $said" "see sandpit doctor on the server's machine" ;;
esac
