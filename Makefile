# SPDX-License-Identifier: Apache-2.0
#
#   make                 build/lancefs, build/fsck.lancefs (and build/liblancefs.a, all that is true without FUSE)
#   make unit            build and run the unit tests
#   make soak            5000 random histories against the model (LANCEFS_HISTORIES, LANCEFS_SEED say how many, from where),
#                        and writers and mergers on one branch for ten minutes (LANCEFS_SOAK_SECONDS), and a second try
#                        after every kill in a change of names
#   make fuzz            build/fuzz/TARGET for libFuzzer (FUZZ_CC=afl-clang-fast: for AFL++) and build/fuzz/corpus/TARGET
#   make fuzz-corpus     the fuzz targets run on their corpora, once, with what compiler and sanitizer are chosen
#   make layers          compile every layer of core/ with the headers of the lower ones alone
#   make install         PREFIX=/usr/local DESTDIR= and the directories below; make uninstall takes the same
#   make deb             Debian packages in build/deb, with lintian's opinion (scripts/deb.sh)
#   make clean
#
#   CC=clang  WERROR=1  SANITIZE=address,undefined  BUILD=build/asan   choose a compiler, warnings as errors, a sanitizer
#   and where things go.

BUILD    ?= build
CC       := $(if $(filter default,$(origin CC)),gcc,$(CC))
CFLAGS   ?= -O2 -g
PKG      := fuse3 libprotobuf-c jansson libzstd uuid
PKGLIBS   = $(shell pkg-config --libs $(PKG)) -lroaring
PKGFLAGS := $(shell pkg-config --cflags $(PKG))
WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla \
            $(if $(WERROR),-Werror)
SAN      := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
PROTO    := $(BUILD)/proto
BASE     := -std=gnu17 -fno-strict-aliasing -D_GNU_SOURCE -DFUSE_USE_VERSION=312 -pthread $(SAN) $(PKGFLAGS) -I$(PROTO)
OWN       = $(BASE) -Icore -I. $(WARN) $(CFLAGS) -MMD -MP

PROTOS     := $(wildcard proto/*.proto)
PROTO_SRC  := $(PROTOS:proto/%.proto=$(PROTO)/%.pb-c.c)
PROTO_HDR  := $(PROTO_SRC:.c=.h)
CORE_OBJ   := $(patsubst %.c,$(BUILD)/%.o,$(wildcard core/*/*.c)) $(PROTO_SRC:.c=.o)
FUSE_OBJ   := $(patsubst %.c,$(BUILD)/%.o,$(wildcard fuse/*.c))
UNIT_SRC   := $(wildcard tests/unit/test_*.c)
UNIT_OBJ   := $(patsubst %.c,$(BUILD)/%.o,$(filter-out $(UNIT_SRC),$(wildcard tests/unit/*.c))) # what tests share
UNIT_BIN   := $(UNIT_SRC:tests/unit/%.c=$(BUILD)/tests/%)
LIB        := $(BUILD)/liblancefs.a

all: $(BUILD)/lancefs $(BUILD)/fsck.lancefs

$(BUILD)/fsck.lancefs: $(BUILD)/fsck/main.o $(LIB)
	$(CC) $(SAN) -pthread -o $@ $< $(LIB) $(LDFLAGS) $(PKGLIBS)

$(BUILD)/lancefs: $(FUSE_OBJ) $(LIB)
	$(CC) $(SAN) -pthread -o $@ $(FUSE_OBJ) $(LIB) $(LDFLAGS) $(PKGLIBS)

$(LIB): $(CORE_OBJ)
	@rm -f $@
	ar rcs $@ $^

$(PROTO)/%.pb-c.c $(PROTO)/%.pb-c.h: proto/%.proto
	@mkdir -p $(PROTO)
	protoc-c -Iproto --c_out=$(PROTO) $<

# Generated code is compiled without our warnings.
$(PROTO)/%.pb-c.o: $(PROTO)/%.pb-c.c $(PROTO_HDR)
	$(CC) $(BASE) $(CFLAGS) -c -o $@ $<

$(BUILD)/%.o: %.c | $(PROTO_HDR)
	@mkdir -p $(@D)
	$(CC) $(OWN) -c -o $@ $<

# Pure files of the mount are tested without it.
$(BUILD)/tests/%: tests/unit/%.c $(UNIT_OBJ) $(LIB) $(filter $(BUILD)/fuse/lines.o,$(FUSE_OBJ)) | $(PROTO_HDR)
	@mkdir -p $(@D)
	$(CC) $(OWN) -MF $@.d -o $@ $< $(filter %.o,$^) $(LIB) $(LDFLAGS) $(PKGLIBS) -lcmocka

# Where every allocation can be made to fail.
WRAPPED    := malloc calloc realloc strdup lfs_alloc lfs_alloc_array lfs_strdup lfs_strndup lfs_memdup lfs_sprintf lfs_join \
              lfs_arena_protobuf
$(BUILD)/tests/test_memory: LDFLAGS += $(WRAPPED:%=-Wl,--wrap=%)

# What instructions are counted of.
$(BUILD)/tests/work: tests/cost/work.c $(LIB) | $(PROTO_HDR)
	@mkdir -p $(@D)
	$(CC) $(OWN) -MF $@.d -o $@ $< $(LIB) $(LDFLAGS) $(PKGLIBS)

unit: $(UNIT_BIN)
	@failed=0; for t in $(UNIT_BIN); do echo "== $$t"; $$t || failed=1; done; exit $$failed

# Fuzz targets: with run.c, which runs files; and, built with another compiler's coverage, with a fuzzer's own main.
FUZZ_BIN   := $(patsubst tests/fuzz/fuzz_%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_MAIN  ?= tests/fuzz/run.c
FUZZ_CC    ?= clang
FUZZ_FROM  ?= # directories of data sets that the corpora are made from, beside what the source tree holds

$(BUILD)/fuzz/%: tests/fuzz/fuzz_%.c $(filter-out -%,$(FUZZ_MAIN)) $(LIB) $(BUILD)/fuse/lines.o | $(PROTO_HDR)
	@mkdir -p $(@D)
	$(CC) $(OWN) -MF $@.d -o $@ $< $(FUZZ_MAIN) $(BUILD)/fuse/lines.o $(LIB) $(LDFLAGS) $(PKGLIBS)

fuzz-targets: $(FUZZ_BIN)

fuzz:
	$(MAKE) fuzz-targets CC=$(FUZZ_CC) BUILD=$(BUILD)/fuzz-build FUZZ_MAIN=-fsanitize=fuzzer \
	  SANITIZE=$(if $(findstring afl,$(FUZZ_CC)),address$(comma)undefined,address$(comma)undefined$(comma)fuzzer-no-link)
	@mkdir -p $(BUILD)/fuzz
	cp $(foreach t,$(FUZZ_BIN),$(BUILD)/fuzz-build/fuzz/$(notdir $t)) $(BUILD)/fuzz/
	node tests/fuzz/corpus.mjs $(BUILD)/fuzz/corpus $(FUZZ_FROM)

fuzz-corpus: $(FUZZ_BIN)
	@node tests/fuzz/corpus.mjs $(BUILD)/fuzz/corpus $(FUZZ_FROM)
	@failed=0; for t in $(notdir $(FUZZ_BIN)); do \
	  $(BUILD)/fuzz/$$t $(BUILD)/fuzz/corpus/$$t $(wildcard tests/fuzz/cases/$$t) || { echo "[  FAILED  ] $$t: 1 test(s)."; failed=1; }; \
	done; exit $$failed

comma := ,

# A copy of the program, so that building goes on meanwhile.
soak: $(BUILD)/lancefs
	@cp $< $(BUILD)/lancefs.soak
	LANCEFS=$(CURDIR)/$(BUILD)/lancefs.soak node tests/oracle/run.mjs --seed $(or $(LANCEFS_SEED),1) \
	  --histories $(or $(LANCEFS_HISTORIES),5000)
	LANCEFS=$(CURDIR)/$(BUILD)/lancefs.soak LANCEFS_SOAK_SECONDS=$(or $(LANCEFS_SOAK_SECONDS),600) \
	  node --test tests/writes/soak.test.mjs
	LANCEFS=$(CURDIR)/$(BUILD)/lancefs.soak LANCEFS_STOPS=0 node --test tests/crash/stop_names.test.mjs

# Arrows point down only: a layer sees its own headers and those of the layers before it.
LAYERS := util format store table merge commit verbs report
layers: | $(PROTO_HDR)
	@set -e; seen=; for layer in $(LAYERS); do \
	  mkdir -p $(BUILD)/layers; ln -sfn $(CURDIR)/core/$$layer $(BUILD)/layers/$$layer; ln -sf $(CURDIR)/core/version.h $(BUILD)/layers/; \
	  for c in core/$$layer/*.c; do $(CC) $(BASE) -I$(BUILD)/layers -fsyntax-only $$c; done; \
	done; rm -rf $(BUILD)/layers; echo "layers: every arrow points down"

# --- installing

PREFIX     ?= /usr/local
BINDIR     ?= $(PREFIX)/bin
SBINDIR    ?= $(PREFIX)/sbin
LIBDIR     ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR     ?= $(PREFIX)/share/man
UNITDIR    ?= $(PREFIX)/lib/systemd/system
BASHDIR    ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR     ?= $(PREFIX)/share/zsh/site-functions
FISHDIR    ?= $(PREFIX)/share/fish/vendor_completions.d
VERSION    := $(shell sed -n 's/^\#define LFS_VERSION "\(.*\)"/\1/p' core/version.h)
HEADERS     = $(wildcard core/*/*.h)
LAYER_DIRS  = $(sort $(patsubst core/%/,%,$(dir $(HEADERS))))
FILL        = sed -e 's|@PREFIX@|$(PREFIX)|g' -e 's|@BINDIR@|$(BINDIR)|g' -e 's|@LIBDIR@|$(LIBDIR)|g' \
                  -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|g' -e 's|@VERSION@|$(VERSION)|g'
# All that is installed, but the headers.
INSTALLED   = $(BINDIR)/lancefs $(SBINDIR)/fsck.lancefs $(SBINDIR)/mount.fuse.lancefs $(LIBDIR)/liblancefs.a \
              $(LIBDIR)/pkgconfig/liblancefs.pc $(MANDIR)/man1/lancefs.1 $(MANDIR)/man5/lancefs-control.5 \
              $(MANDIR)/man8/fsck.lancefs.8 $(UNITDIR)/lancefs@.service $(BASHDIR)/lancefs $(BASHDIR)/fsck.lancefs \
              $(ZSHDIR)/_lancefs $(FISHDIR)/lancefs.fish $(FISHDIR)/fsck.lancefs.fish
D           = $(DESTDIR)

install: all
	install -d $(addprefix $D,$(sort $(dir $(INSTALLED)))) $(addprefix $D$(INCLUDEDIR)/lancefs/,$(LAYER_DIRS))
	install -m 755 $(BUILD)/lancefs $D$(BINDIR)/lancefs
	install -m 755 $(BUILD)/fsck.lancefs $D$(SBINDIR)/fsck.lancefs
	ln -srf $D$(BINDIR)/lancefs $D$(SBINDIR)/mount.fuse.lancefs
	install -m 644 $(LIB) $D$(LIBDIR)/liblancefs.a
	install -m 644 man/lancefs.1 $D$(MANDIR)/man1/
	install -m 644 man/lancefs-control.5 $D$(MANDIR)/man5/
	install -m 644 man/fsck.lancefs.8 $D$(MANDIR)/man8/
	install -m 644 scripts/install/lancefs.bash $D$(BASHDIR)/lancefs
	ln -sf lancefs $D$(BASHDIR)/fsck.lancefs
	install -m 644 scripts/install/_lancefs $D$(ZSHDIR)/
	install -m 644 scripts/install/lancefs.fish $D$(FISHDIR)/
	ln -sf lancefs.fish $D$(FISHDIR)/fsck.lancefs.fish
	$(FILL) scripts/install/lancefs@.service.in > $D$(UNITDIR)/lancefs@.service
	$(FILL) scripts/install/liblancefs.pc.in > $D$(LIBDIR)/pkgconfig/liblancefs.pc
	for h in $(HEADERS:core/%=%); do install -m 644 core/$$h $D$(INCLUDEDIR)/lancefs/$$h || exit 1; done
	install -m 644 core/version.h $(PROTO_HDR) $D$(INCLUDEDIR)/lancefs/

uninstall:
	rm -f $(addprefix $D,$(INSTALLED))
	rm -rf $D$(INCLUDEDIR)/lancefs

deb:
	scripts/deb.sh

clean:
	rm -rf $(BUILD)

.PHONY: all unit soak fuzz fuzz-targets fuzz-corpus layers install uninstall deb clean
.SECONDARY:
-include $(CORE_OBJ:.o=.d) $(FUSE_OBJ:.o=.d) $(BUILD)/fsck/main.d $(UNIT_OBJ:.o=.d) $(UNIT_BIN:=.d) $(BUILD)/tests/work.d $(FUZZ_BIN:=.d)
