<?xml version="1.0" encoding="UTF-8"?>
<!--
  The map as one XHTML page: lists in <details>, which open without script, and beside each page the values that its map carries.
  Words and names for people may be added to the map (namespace urn:periplus:words:1); without them the map's own are shown.
  The result is XML and is read alike as HTML: no empty element but those that are empty in both, and neither style nor script
  holds one of the three signs that XML would escape. The policy names the script's SHA-256: change both together.
-->
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform" xmlns:m="urn:periplus:map:1" xmlns:w="urn:periplus:words:1"
                xmlns="http://www.w3.org/1999/xhtml" exclude-result-prefixes="m w">
  <xsl:output method="xml" encoding="UTF-8" omit-xml-declaration="yes" doctype-system="about:legacy-compat" indent="no"/>

  <xsl:key name="word" match="w:word" use="@of"/>
  <xsl:variable name="linked" select="boolean(//m:linked)"/>
  <xsl:variable name="size" select="boolean(//m:page/@size)"/>
  <xsl:variable name="has-depth" select="boolean(//m:page/@depth)"/>
  <xsl:variable name="in" select="boolean(//m:page/@inlinks)"/>
  <xsl:variable name="out" select="boolean(//m:page/@outlinks)"/>
  <xsl:variable name="rank" select="boolean(//m:page/@rank)"/>
  <xsl:variable name="score" select="boolean(//m:page/@score)"/>
  <xsl:variable name="host" select="substring-before(concat(substring-after(/m:map/@start, '://'), '/'), '/')"/>

  <xsl:template match="/m:map">
    <html lang="en">
      <head>
        <meta charset="utf-8"/>
        <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-XvNfv8F8y3lc9Uh12SErAR22DfAtPdOtAkCxEOhqew8='"/>
        <meta name="viewport" content="width=device-width, initial-scale=1"/>
        <meta name="referrer" content="no-referrer"/>
        <meta name="robots" content="noindex"/>
        <meta name="generator" content="{@program}"/>
        <title><xsl:value-of select="$host"/>: map</title>
        <xsl:call-template name="style"/>
      </head>
      <body>
        <xsl:text>&#10;</xsl:text>
        <header>
          <h1><xsl:value-of select="$host"/></h1>
          <p class="soft">
            <xsl:value-of select="format-number(@pages, '#,##0')"/>
            <xsl:choose><xsl:when test="@pages = 1"> page, up to </xsl:when><xsl:otherwise> pages, up to </xsl:otherwise></xsl:choose>
            <xsl:value-of select="format-number(@deepest, '#,##0')"/>
            <xsl:choose><xsl:when test="@deepest = 1"> click deep</xsl:when><xsl:otherwise> clicks deep</xsl:otherwise></xsl:choose>
            <xsl:text>, crawled from </xsl:text>
            <xsl:call-template name="link"><xsl:with-param name="url" select="@start"/><xsl:with-param name="name" select="@start"/></xsl:call-template>
            <xsl:text>. </xsl:text>
            <xsl:if test="@unreached != 0"><xsl:value-of select="format-number(@unreached, '#,##0')"/> more are reached by no link and stand outside the map. </xsl:if>
            <xsl:if test="//@omitted">Branches are cut; each says how many pages it lacks.</xsl:if>
          </p>
          <xsl:call-template name="legend"/>
        </header>
        <main>
          <p id="tools" hidden="hidden">
            <input id="filter" type="search" placeholder="Filter by name or address" aria-label="Filter by name or address"/>
            <button type="button" id="open">Open all</button>
            <button type="button" id="close">Close all</button>
            <output id="found" class="soft">&#160;</output>
          </p>
          <div class="row heads">
            <span class="name">page</span>
            <xsl:if test="$linked"><span class="linked">behind its links</span></xsl:if>
            <xsl:if test="$has-depth"><span class="n">depth</span></xsl:if>
            <xsl:if test="$size"><span class="n size">size</span></xsl:if>
            <xsl:if test="$in"><span class="n">links in</span></xsl:if>
            <xsl:if test="$out"><span class="n">links out</span></xsl:if>
            <xsl:if test="$rank"><span class="n rank">rank</span></xsl:if>
            <xsl:if test="$score"><span class="score">score</span></xsl:if>
          </div>
          <ul class="map">
            <xsl:apply-templates select="m:page"/>
          </ul>
        </main>
        <footer>
          <dl>
            <dt>Run</dt><dd><xsl:value-of select="@run"/>&#160;</dd>
            <dt>Made</dt><dd><xsl:value-of select="translate(@created, 'TZ', ' ')"/> UTC by <xsl:value-of select="@program"/></dd>
            <dt>PageRank</dt><dd>damping <xsl:value-of select="@damping"/>, <xsl:value-of select="@rounds"/> rounds</dd>
            <dt>Parent of a page</dt><dd>one click nearer to the home page; of several: <xsl:value-of select="@ties"/></dd>
            <xsl:for-each select="m:parameter">
              <dt><xsl:value-of select="@name"/></dt><dd><xsl:value-of select="@value"/>&#160;</dd>
            </xsl:for-each>
          </dl>
        </footer>
        <xsl:call-template name="script"/>
      </body>
    </html>
  </xsl:template>

  <xsl:template match="m:page">
    <li>
      <xsl:choose>
        <xsl:when test="m:page">
          <details>
            <xsl:if test="not(parent::m:page)"><xsl:attribute name="open">open</xsl:attribute></xsl:if>
            <summary class="row"><xsl:call-template name="row"/></summary>
            <ul><xsl:apply-templates select="m:page"/></ul>
          </details>
        </xsl:when>
        <xsl:otherwise><div class="row leaf"><xsl:call-template name="row"/></div></xsl:otherwise>
      </xsl:choose>
    </li>
    <xsl:text>&#10;</xsl:text>
  </xsl:template>

  <xsl:template name="row">
    <span class="name">
      <bdi>
        <xsl:call-template name="link">
          <xsl:with-param name="url" select="@url"/>
          <xsl:with-param name="name">
            <xsl:choose>
              <xsl:when test="@w:name"><xsl:value-of select="@w:name"/></xsl:when>
              <xsl:when test="@title"><xsl:value-of select="@title"/></xsl:when>
              <xsl:otherwise><xsl:value-of select="@url"/></xsl:otherwise>
            </xsl:choose>
          </xsl:with-param>
        </xsl:call-template>
      </bdi>
      <xsl:call-template name="chips"/>
      <xsl:if test="m:page or @omitted">
        <span class="count"><xsl:value-of select="format-number(count(descendant-or-self::m:page) + sum(descendant-or-self::m:page/@omitted), '#,##0')"/></span>
      </xsl:if>
      <xsl:if test="@omitted"><span class="chip"><xsl:value-of select="format-number(@omitted, '#,##0')"/> not shown</span></xsl:if>
    </span>
    <xsl:if test="$linked"><span class="linked"><xsl:apply-templates select="m:linked"/></span></xsl:if>
    <xsl:if test="$has-depth"><span class="n"><xsl:value-of select="@depth"/></span></xsl:if>
    <xsl:if test="$size"><span class="n size"><xsl:if test="@size != 0"><xsl:call-template name="size"><xsl:with-param name="bytes" select="@size"/></xsl:call-template></xsl:if>&#8203;</span></xsl:if>
    <xsl:if test="$in"><span class="n"><xsl:value-of select="format-number(@inlinks, '#,##0')"/></span></xsl:if>
    <xsl:if test="$out"><span class="n"><xsl:value-of select="format-number(@outlinks, '#,##0')"/></span></xsl:if>
    <xsl:if test="$rank"><span class="n rank"><xsl:value-of select="@rank"/></span></xsl:if>
    <xsl:if test="$score">
      <span class="score">
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect class="bar" width="{@score}" height="10"/></svg>
        <b><xsl:value-of select="@score"/></b>
      </span>
    </xsl:if>
  </xsl:template>

  <!-- What sets the page apart from one that was simply fetched and read. -->
  <xsl:template name="chips">
    <xsl:variable name="odd" select="(@reason and @reason != 'ok' and not(@reason = 'other-media' and @media_type)) or (not(@reason) and @state and @state != 'fetched') or @status &gt;= 300"/>
    <xsl:if test="$odd">
      <span>
        <xsl:attribute name="class">chip<xsl:if test="@state = 'failed' or @status &gt;= 400"> failed</xsl:if></xsl:attribute>
        <xsl:variable name="word" select="key('word', @reason)"/>
        <xsl:choose>
          <xsl:when test="$word"><xsl:value-of select="$word"/></xsl:when>
          <xsl:when test="@reason"><xsl:value-of select="@reason"/></xsl:when>
          <xsl:otherwise><xsl:value-of select="@state"/></xsl:otherwise>
        </xsl:choose>
        <xsl:if test="@status &gt;= 300"><xsl:text> </xsl:text><xsl:value-of select="@status"/></xsl:if>
      </span>
    </xsl:if>
    <xsl:if test="@media_type and @media_type != 'text/html' and @media_type != 'application/xhtml+xml'"><span class="chip"><xsl:value-of select="@media_type"/></span></xsl:if>
  </xsl:template>

  <!-- A link to a crawled page, which learns nothing of us; the bare name where the URL is none that browsers should open. -->
  <xsl:template name="link">
    <xsl:param name="url"/>
    <xsl:param name="name"/>
    <xsl:choose>
      <xsl:when test="starts-with($url, 'http://') or starts-with($url, 'https://')">
        <a href="{$url}" rel="noopener noreferrer nofollow"><xsl:value-of select="$name"/></a>
      </xsl:when>
      <xsl:otherwise><xsl:value-of select="$name"/>&#8203;</xsl:otherwise>
    </xsl:choose>
  </xsl:template>

  <xsl:template match="m:linked">
    <xsl:variable name="all" select="sum(@*[name() != 'unsized'])"/>
    <xsl:variable name="words">
      <xsl:for-each select="@*[name() != 'unsized']">
        <xsl:value-of select="name()"/>
        <xsl:text> </xsl:text>
        <xsl:call-template name="size"><xsl:with-param name="bytes" select="."/></xsl:call-template>
        <xsl:if test="position() != last()">, </xsl:if>
      </xsl:for-each>
      <xsl:if test="@unsized"><xsl:if test="$all">, </xsl:if><xsl:value-of select="@unsized"/> of unknown size</xsl:if>
    </xsl:variable>
    <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label="{$words}">
      <title><xsl:value-of select="$words"/></title>
      <xsl:if test="$all">
        <xsl:call-template name="part"><xsl:with-param name="of" select="@pages"/><xsl:with-param name="left" select="0"/><xsl:with-param name="all" select="$all"/></xsl:call-template>
        <xsl:call-template name="part"><xsl:with-param name="of" select="@documents"/><xsl:with-param name="left" select="sum(@pages)"/><xsl:with-param name="all" select="$all"/></xsl:call-template>
        <xsl:call-template name="part"><xsl:with-param name="of" select="@images"/><xsl:with-param name="left" select="sum(@pages | @documents)"/><xsl:with-param name="all" select="$all"/></xsl:call-template>
        <xsl:call-template name="part"><xsl:with-param name="of" select="@recordings"/><xsl:with-param name="left" select="sum(@pages | @documents | @images)"/><xsl:with-param name="all" select="$all"/></xsl:call-template>
        <xsl:call-template name="part"><xsl:with-param name="of" select="@styles"/><xsl:with-param name="left" select="sum(@pages | @documents | @images | @recordings)"/><xsl:with-param name="all" select="$all"/></xsl:call-template>
        <xsl:call-template name="part"><xsl:with-param name="of" select="@scripts"/><xsl:with-param name="left" select="$all - sum(@scripts | @other)"/><xsl:with-param name="all" select="$all"/></xsl:call-template>
        <xsl:call-template name="part"><xsl:with-param name="of" select="@other"/><xsl:with-param name="left" select="$all - sum(@other)"/><xsl:with-param name="all" select="$all"/></xsl:call-template>
      </xsl:if>
    </svg>
    <span class="n"><xsl:if test="$all"><xsl:call-template name="size"><xsl:with-param name="bytes" select="$all"/></xsl:call-template></xsl:if>&#8203;</span>
  </xsl:template>

  <xsl:template name="part">
    <xsl:param name="of"/>
    <xsl:param name="left"/>
    <xsl:param name="all"/>
    <xsl:if test="$of">
      <rect xmlns="http://www.w3.org/2000/svg" class="{name($of)}" x="{round(1000 * $left div $all) div 10}" width="{round(1000 * $of div $all) div 10}" height="10"/>
    </xsl:if>
  </xsl:template>

  <!-- 812 B, 4.1 KB, 23 MB -->
  <xsl:template name="size">
    <xsl:param name="bytes"/>
    <xsl:choose>
      <xsl:when test="$bytes &lt; 1000"><xsl:value-of select="$bytes"/> B</xsl:when>
      <xsl:when test="$bytes &lt; 99950"><xsl:value-of select="format-number($bytes div 1000, '0.0')"/> KB</xsl:when>
      <xsl:when test="$bytes &lt; 999500"><xsl:value-of select="format-number($bytes div 1000, '0')"/> KB</xsl:when>
      <xsl:when test="$bytes &lt; 99950000"><xsl:value-of select="format-number($bytes div 1000000, '0.0')"/> MB</xsl:when>
      <xsl:when test="$bytes &lt; 999500000"><xsl:value-of select="format-number($bytes div 1000000, '0')"/> MB</xsl:when>
      <xsl:when test="$bytes &lt; 999500000000"><xsl:value-of select="format-number($bytes div 1000000000, '0.0')"/> GB</xsl:when>
      <xsl:otherwise><xsl:value-of select="format-number($bytes div 1000000000000, '#,##0.0')"/> TB</xsl:otherwise>
    </xsl:choose>
  </xsl:template>

  <xsl:template name="legend">
    <xsl:if test="$linked">
      <p class="legend">
        <xsl:text>Bytes behind a page’s links: </xsl:text>
        <span><span class="key pages">&#8203;</span>pages</span>
        <span><span class="key documents">&#8203;</span>documents</span>
        <span><span class="key images">&#8203;</span>images</span>
        <span><span class="key recordings">&#8203;</span>audio, video</span>
        <span><span class="key styles">&#8203;</span>styles</span>
        <span><span class="key scripts">&#8203;</span>scripts</span>
        <span><span class="key other">&#8203;</span>other</span>
      </p>
    </xsl:if>
  </xsl:template>

  <xsl:template name="style">
    <style>
:root {
  color-scheme: light dark;
  --paper: #fbfaf7; --card: #ffffff; --ink: #22272b; --soft: #5d676e; --line: #e2e0d9; --link: #155e75; --dead: #bd4f3c; --bar: #9cc3c4; --chip: #f1efe8;
  --pages: #7c9cb8; --documents: #b49a63; --images: #cf5f3c; --recordings: #8a62a8; --styles: #5f9e7d; --scripts: #cdb43f; --other: #a3a8a5;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #15191c; --card: #1c2125; --ink: #dfe3e4; --soft: #98a3a9; --line: #30373c; --link: #7cc4d4; --dead: #d9705c; --bar: #356d72; --chip: #2a3136;
    --pages: #5b7f9e; --documents: #9c834e; --images: #df7350; --recordings: #a57fc2; --styles: #5aa27c; --scripts: #c2ab45; --other: #6f7673;
  }
}
* { box-sizing: border-box; }
html { font: 16px/1.45 system-ui, "Segoe UI", "Noto Sans", "Liberation Sans", sans-serif; background: var(--paper); color: var(--ink); }
body { margin: 0 auto; max-width: 76rem; padding: 2.2rem 1.25rem 4rem; font-variant-numeric: tabular-nums; }
a { color: var(--link); text-decoration: none; overflow-wrap: anywhere; }
a:hover { text-decoration: underline; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .3rem; font-weight: 600; overflow-wrap: anywhere; }
p { margin: .3rem 0 .7rem; }
.soft, .legend, .count, .heads, .n { color: var(--soft); }
.legend { font-size: .88rem; display: flex; flex-wrap: wrap; gap: .15rem 1rem; }
.key { display: inline-block; width: .7em; height: .7em; border-radius: 2px; margin-right: .4em; overflow: hidden; }
#tools { display: flex; flex-wrap: wrap; gap: .5rem; align-items: center; margin: 1rem 0 .6rem; }
#tools[hidden] { display: none; }
#filter { font: inherit; flex: 1 1 16rem; max-width: 26rem; padding: .35rem .6rem; border: 1px solid var(--line); border-radius: 6px;
  background: var(--card); color: inherit; }
button { font: inherit; font-size: .9rem; padding: .32rem .7rem; border: 1px solid var(--line); border-radius: 6px; background: var(--card); color: inherit; cursor: pointer; }
ul { list-style: none; margin: 0; padding: 0; }
ul ul { margin-left: .45rem; padding-left: 1rem; border-left: 1px solid var(--line); }
ul.map, .heads { padding: .6rem 1rem; font-size: .93rem; background: var(--card); border: 1px solid var(--line); }
ul.map { border-top: 0; border-radius: 0 0 8px 8px; }
.heads { position: sticky; top: 0; z-index: 1; border-radius: 8px 8px 0 0; padding-top: .3rem; padding-bottom: .3rem; font-size: .85rem; }
.row { display: flex; align-items: baseline; gap: .7rem; padding: .12rem 0; }
.heads.row { padding: .3rem 1rem; white-space: nowrap; }
li li .row { content-visibility: auto; contain-intrinsic-block-size: auto 1.6rem; }
summary { cursor: pointer; list-style: none; }
summary::-webkit-details-marker { display: none; }
summary::before { content: "▸"; color: var(--soft); width: .8rem; flex: none; margin-right: -.4rem; transition: transform .12s; }
details[open] summary::before { transform: rotate(90deg); }
details[open] details:not([open]) summary::before { transform: none; }
.leaf::before { content: ""; width: .8rem; flex: none; margin-right: -.4rem; }
.row:hover { background: var(--chip); }
.heads.row:hover { background: var(--card); }
.name { flex: 1; min-width: 0; }
.chip { background: var(--chip); color: var(--soft); font-size: .78rem; border-radius: 4px; padding: .08rem .4rem; margin-left: .4rem; overflow-wrap: anywhere; }
.chip.failed { color: var(--dead); }
.count { font-size: .82rem; margin-left: .5rem; }
.n { width: 4.4rem; flex: none; text-align: right; font-size: .85rem; white-space: nowrap; }
.n.rank { width: 6.4rem; }
.linked { width: 9.6rem; flex: none; display: flex; gap: .5rem; align-items: center; align-self: center; }
.linked .n { width: 4.2rem; }
.linked svg { flex: 1; height: 9px; border-radius: 2px; background: var(--chip); min-width: 0; }
.score { width: 5.6rem; flex: none; display: flex; align-items: center; gap: .5rem; font-size: .85rem; color: var(--soft); align-self: center; }
.score svg { flex: 1; min-width: 0; height: 6px; border-radius: 3px; background: var(--chip); }
.score b { font-weight: 400; width: 1.8rem; text-align: right; flex: none; }
.heads .score { justify-content: flex-end; }
.bar { fill: var(--bar); }
.pages { fill: var(--pages); background: var(--pages); } .documents { fill: var(--documents); background: var(--documents); }
.images { fill: var(--images); background: var(--images); } .recordings { fill: var(--recordings); background: var(--recordings); }
.styles { fill: var(--styles); background: var(--styles); } .scripts { fill: var(--scripts); background: var(--scripts); }
.other { fill: var(--other); background: var(--other); }
footer { margin-top: 2.4rem; border-top: 1px solid var(--line); padding-top: 1rem; color: var(--soft); font-size: .88rem; }
footer dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: 0; }
footer dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 48rem) {
  body { padding: 1.2rem .8rem 3rem; }
  .row .n, .heads .n { display: none; }
  .linked { width: 3.4rem; } .heads .linked { visibility: hidden; height: 0; }
  .score { width: 2rem; } .score svg { display: none; }
  ul ul { padding-left: .5rem; margin-left: .3rem; }
}
@media print {
  html { font-size: 9.5pt; background: #fff; }
  body { max-width: none; padding: 0; }
  #tools { display: none; }
  .heads { position: static; }
  .row { break-inside: avoid; content-visibility: visible; }
  details::details-content { content-visibility: visible; block-size: auto; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
</style>
  </xsl:template>

  <xsl:template name="script">
    <script>
(function () {
  "use strict";
  var items = Array.from(document.querySelectorAll(".map li"));
  var branches = Array.from(document.querySelectorAll(".map details"));
  var filter = document.getElementById("filter"), found = document.getElementById("found");
  var places = new Map(), texts = null, parents = null, opened = null, waiting = 0;

  function read() {
    items.forEach(function (item, place) { places.set(item, place); });
    parents = items.map(function (item) {
      var above = item.parentElement.closest("li");
      return above ? places.get(above) : -1;
    });
    texts = items.map(function (item) {
      var name = item.querySelector(".name"), link = name.querySelector("a");
      return (name.textContent + " " + (link ? link.href : "")).toLowerCase();
    });
  }

  function show() {
    var wanted = filter.value.trim().toLowerCase(), kept = [], hits = 0, place;
    if (texts === null) { read(); }
    if (wanted) { if (opened === null) { opened = branches.map(function (branch) { return branch.open; }); } }
    for (place = items.length - 1; place !== -1; place -= 1) {
      if (texts[place].includes(wanted)) { kept[place] = true; hits += 1; }
      if (kept[place]) { if (parents[place] !== -1) { kept[parents[place]] = true; } }
    }
    items.forEach(function (item, place) { item.hidden = !kept[place]; });
    if (wanted) {
      branches.forEach(function (branch) { branch.open = !branch.parentElement.hidden; });
    } else {
      if (opened !== null) { branches.forEach(function (branch, place) { branch.open = opened[place]; }); }
      opened = null;
    }
    found.textContent = wanted ? hits.toLocaleString("en") + " found" : "";
  }

  function each(open) { branches.forEach(function (branch, place) { branch.open = open || place === 0; }); }
  filter.addEventListener("input", function () { clearTimeout(waiting); waiting = setTimeout(show, 150); });
  document.getElementById("open").addEventListener("click", function () { each(true); });
  document.getElementById("close").addEventListener("click", function () { each(false); });
  document.getElementById("tools").hidden = false;
}());
</script>
  </xsl:template>
</xsl:stylesheet>
