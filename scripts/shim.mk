# Makes the header of the border, compiles crates/plugin/shim/*.cc and links ha_teak.so with the Rust static library; the
# same of another library, with NAME=teak_heap CRATE=crates/heap. Called by scripts/build.sh.
#
# In: HEADERS (the server's private headers), RUST_LIB (libteak_plugin.a), OUT (where NAME.so goes), OBJ (for objects).
# For another server than the installed one also PUBLIC (its public headers), SERVER_DEFINES (what decides its
# structures' layout) and SERVICES (its libmysqlservices). Called by scripts/debug-server.sh with those. PROFILE and
# PROFILE_LINK are further flags, of the compiler and the linker: see scripts/build-profiled.sh.
# g++ does the linking, because rustc's own version script would hide the plugin's three C++ symbols.

NAME ?= ha_teak
CRATE ?= crates/plugin
SHIM := $(CRATE)/shim
OBJ ?= build/shim
SOURCES := $(wildcard $(SHIM)/*.cc)
BORDER := $(CRATE)/src/ffi
OBJECTS := $(SOURCES:$(SHIM)/%.cc=$(OBJ)/%.o)
PUBLIC ?= /usr/include/mariadb/server
SERVER_DEFINES ?= -DDBUG_OFF
SERVICES ?= -lmysqlservices
PROFILE ?=
PROFILE_LINK ?=

# The order is the server's own: generated before public before private. What each shim needs is in the engine's.
INCLUDES := -I$(SHIM) -I$(OBJ) -Icrates/plugin/shim -isystem $(HEADERS)/generated -isystem $(PUBLIC) -isystem $(HEADERS)/sql \
	-isystem $(HEADERS)/include -isystem $(HEADERS)/wsrep-lib/include -isystem $(HEADERS)/wsrep-lib/wsrep-API/v26
DEFINES := -DMYSQL_DYNAMIC_PLUGIN -DHAVE_CONFIG_H $(SERVER_DEFINES) -D_GNU_SOURCE -DMYSQL_SERVER=1
# No -fvisibility=hidden: it would hide what maria_declare_plugin defines. The version script hides all the rest.
CXXFLAGS := -std=gnu++17 -fPIC -O2 -g1 -fvisibility-inlines-hidden -Wall -Wextra -Wno-unused-parameter $(PROFILE)

# Symbols of the server stay undefined, so --no-undefined cannot be used: scripts/check-symbols.sh checks instead.
LDFLAGS := -shared -Wl,--version-script=scripts/ha_teak.map -Wl,--gc-sections -Wl,-z,relro,-z,now $(PROFILE_LINK)
ifeq ($(NAME),teak_heap)
# Threads may be in its hooks when the server closes it.
LDFLAGS += -Wl,-z,nodelete
endif

$(OUT)/$(NAME).so: $(OBJECTS) $(RUST_LIB) scripts/ha_teak.map scripts/check-symbols.sh
	@mkdir -p $(OUT)
	$(CXX) $(LDFLAGS) -o $@.new $(OBJECTS) $(RUST_LIB) $(SERVICES) -lpthread -ldl -lm
	@scripts/check-symbols.sh $@.new
	@mv -f $@.new $@

# Objects follow the headers' directory too: another server version is another ABI.
$(OBJ)/%.o: $(SHIM)/%.cc $(OBJ)/flags | $(OBJ)/teak_ffi.h
	$(CXX) $(CXXFLAGS) $(DEFINES) $(INCLUDES) -MMD -MP -c -o $@ $<

# The border as C++ sees it; what it says and not when it was written decides what is compiled again.
$(OBJ)/teak_ffi.h: scripts/border.py $(wildcard $(BORDER)/*.rs)
	@mkdir -p $(OBJ)
	@scripts/border.py $(BORDER) >$@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv -f $@.new $@; fi

$(OBJ)/flags: FORCE
	@mkdir -p $(OBJ)
	@echo '$(CXX) $(CXXFLAGS) $(DEFINES) $(INCLUDES)' | cmp -s - $@ || \
		echo '$(CXX) $(CXXFLAGS) $(DEFINES) $(INCLUDES)' >$@

FORCE:
.PHONY: FORCE
-include $(OBJECTS:.o=.d)
