# SPDX-License-Identifier: Apache-2.0
#
#   make                 build/lancefs, build/fsck.lancefs (and build/liblancefs.a, all that is true without FUSE)
#   make unit            build and run the unit tests
#   make soak            5000 random histories against the model (LANCEFS_HISTORIES, LANCEFS_SEED say how many, from where)
#   make layers          compile every layer of core/ with the headers of the lower ones alone
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

# What instructions are counted of.
$(BUILD)/tests/work: tests/cost/work.c $(LIB) | $(PROTO_HDR)
	@mkdir -p $(@D)
	$(CC) $(OWN) -MF $@.d -o $@ $< $(LIB) $(LDFLAGS) $(PKGLIBS)

unit: $(UNIT_BIN)
	@failed=0; for t in $(UNIT_BIN); do echo "== $$t"; $$t || failed=1; done; exit $$failed

# A copy of the program, so that building goes on meanwhile.
soak: $(BUILD)/lancefs
	@cp $< $(BUILD)/lancefs.soak
	LANCEFS=$(CURDIR)/$(BUILD)/lancefs.soak node tests/oracle/run.mjs --seed $(or $(LANCEFS_SEED),1) \
	  --histories $(or $(LANCEFS_HISTORIES),5000)

# Arrows point down only: a layer sees its own headers and those of the layers before it.
LAYERS := util format store table merge commit verbs report
layers: | $(PROTO_HDR)
	@set -e; seen=; for layer in $(LAYERS); do \
	  mkdir -p $(BUILD)/layers; ln -sfn $(CURDIR)/core/$$layer $(BUILD)/layers/$$layer; ln -sf $(CURDIR)/core/version.h $(BUILD)/layers/; \
	  for c in core/$$layer/*.c; do $(CC) $(BASE) -I$(BUILD)/layers -fsyntax-only $$c; done; \
	done; rm -rf $(BUILD)/layers; echo "layers: every arrow points down"

clean:
	rm -rf $(BUILD)

.PHONY: all unit soak layers clean
.SECONDARY:
-include $(CORE_OBJ:.o=.d) $(FUSE_OBJ:.o=.d) $(BUILD)/fsck/main.d $(UNIT_OBJ:.o=.d) $(UNIT_BIN:=.d) $(BUILD)/tests/work.d
