#!/bin/sh
# Holds the stand-in for Browserbase against the official SDK. Needs Node and npm.
#   scripts/verify/browserbase.sh
set -eu

cd "$(dirname "$0")/browserbase"
npm install --no-package-lock --no-audit --no-fund --silent
TAPIN_VERIFY_BROWSERBASE=$(pwd) exec "${GO:-go}" test -count=1 -v -run TestTheOfficialSDK ../../../internal/browser/browserbase
