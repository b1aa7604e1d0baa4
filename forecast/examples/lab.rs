#![allow(missing_docs, dead_code, unused, clippy::all)]
#[path = "../tests/bench/protocol.rs"]
mod protocol;
use goodput_forecast::history::History;
use goodput_forecast::models::*;
use goodput_forecast::models::{level_naive::LevelNaive,holt_winters::HoltWinters,direct_ridge::DirectRidge,fourier_ar::FourierAr,profile::Profile,nlinear::NLinear,logged::Logged};
use protocol::*;
use std::time::Instant;

struct Cached { split: Split, names: Vec<String>, origins: Vec<usize>, /* [origin][expert][step] */ paths: Vec<Vec<Vec<f64>>> }

struct Week { p: usize }
impl Path for Week { fn refit(&mut self,_:&History){} fn push(&mut self,_:&History){} fn path(&self,past:&History,out:&mut[f64]){ let n=out.len(); for (s,o) in out.iter_mut().enumerate(){ *o = if past.len()>=self.p {past.lag(self.p - s % self.p)} else {past.lag(past.season()-s%past.season())}; } } }

fn experts(s: &Split) -> Vec<(&'static str, Box<dyn Path>)> {
    let (m,w,h)=(s.season,s.week,s.horizon);
    let f = |days: f64| 0.5f64.powf(1.0/(days*m as f64));
    vec![
        ("naive", Box::new(Week{p:1})),
        ("day", Box::new(Week{p:m})),
        ("week", Box::new(Week{p:w})),
        ("level_day", Box::new(LevelNaive::new(m,h))),
        ("level_week", Box::new(LevelNaive::new(w,h))),
        ("hw", Box::new(HoltWinters::new(m))),
        ("log_hw", Box::new(Logged::new(HoltWinters::new(m)))),
        ("ridge", Box::new(DirectRidge::new(h,1e-3,f(14.0)))),
        ("log_ridge", Box::new(Logged::new(DirectRidge::new(h,1e-3,f(14.0))))),
        ("fourier", Box::new(FourierAr::new(m,6,7.0*m as f64))),
        ("log_fourier", Box::new(Logged::new(FourierAr::new(m,6,7.0*m as f64)))),
        ("profile", Box::new(Profile::new(m,7,2,0.9))),
        ("wprofile", Box::new(Profile::new(w,4,1,0.9))),
        ("nlinear", Box::new(NLinear::new(2*m,h))),
    ]
}

/// roll from `from` on with daily refits, paths at every stride
fn roll(s: &Split, from: usize, mk: &dyn Fn(&Split)->Vec<(&'static str, Box<dyn Path>)>, only: Option<&str>) -> Cached {
    let mut es = mk(s);
    if let Some(o)=only { es.retain(|e| e.0==o); }
    let mut past = History::new(s.season, s.week, 100000);
    let y = s.masked();
    let end = s.y.len()-s.horizon;
    let mut times=vec![0.0;es.len()];
    let mut origins=vec![]; let mut paths=vec![];
    for t in 0..=end {
        if t==from || (t>from && (t-from)%s.season==0) {
            for (e,tm) in es.iter_mut().zip(&mut times) { let i=Instant::now(); e.1.refit(&past); *tm+=i.elapsed().as_secs_f64(); }
        }
        if t>=from && t%s.stride==s.cal_start%s.stride {
            origins.push(t);
            paths.push(es.iter().map(|e|{let mut o=vec![0.0;s.horizon]; e.1.path(&past,&mut o); for v in &mut o {*v=v.max(0.0);} o}).collect());
        }
        past.push(y[t]);
        if t>=from { for e in &mut es { e.1.push(&past);} }
    }
    eprintln!("{} {:?}", s.name, es.iter().zip(&times).map(|(e,t)| format!("{}:{:.2}s",e.0,t)).collect::<Vec<_>>());
    Cached{split:s.clone(),names:es.iter().map(|e|e.0.to_string()).collect(),origins,paths}
}
impl Cached { fn issues(&self, e: usize)->Vec<Issue>{ self.origins.iter().zip(&self.paths).map(|(&origin,p)| Issue{origin,point:p[e].clone(),quantiles:None}).collect() } }

/// a synthetic split of other series: development only
fn dev() -> Vec<Split> {
    let mut out=vec![];
    let mk=|name:&str,y:Vec<f64>,season:usize,mins:i64,zero_gap:bool|{
        let n=y.len(); let observed:Vec<bool>=y.iter().map(|v| if zero_gap {*v>0.0} else {!v.is_nan()}).collect();
        let mut filled=vec![]; for i in 0..n { filled.push(if observed[i]{y[i]} else if i>=season {filled[i-season]} else if i>0 {filled[i-1]} else {0.0}); }
        let cal_start=(n/2).min(n-season*5)/season*season; let test_start=cal_start+2*season;
        let mut d=0.0;let mut c=0.0; for i in season..cal_start { if observed[i]&&observed[i-season]{ d+=(filled[i]-filled[i-season] as f64).abs();c+=1.0;} }
        Split{name:name.into(),y,observed,filled,season,week:7*season,horizon:season,stride:(season/24).max(1),cal_start,test_start,scale:d/c,step_minutes:mins}
    };
    // pre-test part of the six, splits moved back
    for n in SERIES { let s=Split::load(n); let cut=s.test_start; let mut t=s.clone(); t.name=format!("pre_{n}"); t.y.truncate(cut);t.observed.truncate(cut);t.filled.truncate(cut);
        t.cal_start = if n=="taxi" {4704} else {cut - 5*s.season - if cut>2000 {4*s.season} else {0}}; t.test_start=t.cal_start+ s.season; t.stride = if n=="taxi" {12} else {6}; out.push(t); }
    let col=|f:&str,c:usize|->Vec<f64>{ let t=shared(&format!("data/load/{f}")); rows(&t).map(|r| r[c].parse().unwrap_or(f64::NAN)).collect() };
    let half=|v:Vec<f64>|->Vec<f64>{ v.chunks(2).map(|c| c.iter().sum::<f64>()/c.len() as f64).collect() };
    out.push(mk("mid",col("servegen_rate_10min.csv",2),144,10,true));
    for (i,n) in [(7,"mid36"),(8,"mid73"),(9,"mid101"),(10,"mid66")] { out.push(mk(n,col("servegen_top_clients_rate_10min.csv",i),144,10,true)); }
    out.push(mk("asg",half(col("nab_cpu_utilization_asg_misconfiguration.csv",1))[..4000].to_vec(),144,10,false));
    out.push(mk("aapl",half(col("nab_Twitter_volume_AAPL.csv",1))[..4000].to_vec(),144,10,false));
    out.push(mk("amzn",half(col("nab_Twitter_volume_AMZN.csv",1))[..4000].to_vec(),144,10,false));
    out.push(mk("fb",half(col("nab_Twitter_volume_FB.csv",1))[..4000].to_vec(),144,10,false));
    out.push(mk("dlrm_cpu",col("alibaba_dlrm2025_active_10min.csv",2)[..3500].to_vec(),144,10,false));
    out.push(mk("taylor",col("taylor_halfhourly_MW.csv",0).to_vec(),48,30,false));
    out.push(mk("etth1_ot",col("ETTh1.csv",7)[..3000].to_vec(),24,60,false));
    out.push(mk("etth1_mull",col("ETTh1.csv",4)[..3000].iter().map(|v| v+10.0).collect(),24,60,false));
    out
}

fn geo(v:&[f64])->f64{ (v.iter().map(|x|x.ln()).sum::<f64>()/v.len() as f64).exp() }

fn hour(s:&Split)->usize{ (s.season/24).max(1) }

fn table(cs:&[Cached]) {
    let names=cs[0].names.clone();
    for band in ["24h","1h"] {
        println!("MASE {band}");
        print!("{:12}",""); for c in cs {print!("{:>9}",&c.split.name[..c.split.name.len().min(8)]);} println!("{:>9}","geo");
        let steps=|s:&Split| if band=="24h" {s.horizon} else {hour(s)};
        let base:Vec<f64>=cs.iter().map(|c| { let i=c.names.iter().position(|n|n=="day").unwrap(); score(&c.split,&c.issues(i),steps(&c.split)).mase }).collect();
        for (i,n) in names.iter().enumerate() {
            let v:Vec<f64>=cs.iter().map(|c| score(&c.split,&c.issues(i),steps(&c.split)).mase).collect();
            print!("{n:12}"); for x in &v {print!("{x:9.3}");}
            let r:Vec<f64>=v.iter().zip(&base).zip(cs).filter(|x|x.1.split.name!="dlrm_gpu").map(|(x,_)|x).map(|(a,b)|a/b).filter(|x|x.is_finite()&&*x>0.0).collect();
            println!("{:9.3}",geo(&r));
        }
    }
}

#[derive(Clone,Copy,Debug)]
struct Mix { kind: u8, power: f64, half_days: f64, prior: f64 }
fn blocks(h:usize)->Vec<usize>{ let mut v=vec![]; for s in 0..h { v.push(((s+1) as f64).log2().floor() as usize);} v }
fn weighted_median(v:&mut Vec<(f64,f64)>)->f64{ v.sort_by(|a,b|a.0.total_cmp(&b.0)); let tot:f64=v.iter().map(|x|x.1).sum(); let mut acc=0.0; for (i,x) in v.iter().enumerate(){ if acc+x.1>=tot/2.0 { return x.0;} acc+=x.1;} v[v.len()-1].0 }
/// combine cached experts online
fn mix(c:&Cached, use_:&[usize], k:Mix)->Vec<Issue>{
    let s=&c.split; let h=s.horizon; let bl=blocks(h); let nb=bl[h-1]+1; let ne=use_.len();
    let step_decay=0.5f64.powf(1.0/(k.half_days*s.season as f64));
    // running loss per block and expert
    let mut loss=vec![vec![0.0;ne];nb]; let mut cnt=vec![0.0;nb];
    let mut eta=vec![vec![0.0;ne];nb]; // cumulative regret for kind 3
    let mut out:Vec<Issue>=vec![]; let mut settled_to=c.origins[0];
    let wts=|loss:&Vec<Vec<f64>>,cnt:&Vec<f64>,b:usize|->Vec<f64>{
        // borrow from shorter blocks when little
        let mut l=vec![k.prior*0.0;ne]; let mut n=0.0;
        let mut bb=b as isize; while bb>=0 { for e in 0..ne { l[e]+=loss[bb as usize][e]; } n+=cnt[bb as usize]; if n>24.0 {break;} bb-=1; }
        if n<=0.0 { return vec![1.0/ne as f64;ne]; }
        let best=l.iter().cloned().fold(f64::INFINITY,f64::min).max(1e-12);
        let w:Vec<f64>=l.iter().map(|x| (best/x.max(1e-12)).powf(k.power)+k.prior).collect(); let t:f64=w.iter().sum(); w.iter().map(|x|x/t).collect() };
    for (oi,&o) in c.origins.iter().enumerate() {
        for t in settled_to..o {
            for b in 0..nb { for e in 0..ne { loss[b][e]*=step_decay; } cnt[b]*=step_decay; }
            if !s.observed[t] {continue;}
            for (pi,&po) in c.origins[..oi].iter().enumerate().rev() { if po+h<=t {break;} if t<po {continue;} let st=t-po; let b=bl[st];
                for (ei,&e) in use_.iter().enumerate() { loss[b][ei]+=(s.y[t]-c.paths[pi][e][st]).abs(); } cnt[b]+=1.0; }
        }
        settled_to=o;
        let ws:Vec<Vec<f64>>=(0..nb).map(|b| wts(&loss,&cnt,b)).collect();
        let point=(0..h).map(|st|{ let w=&ws[bl[st]]; let mut v:Vec<(f64,f64)>=use_.iter().zip(w).map(|(&e,&w)|(c.paths[oi][e][st],w)).collect();
            match k.kind { 0=>v.iter().map(|x|x.0*x.1).sum(), 1=>weighted_median(&mut v), _=>{ 0.5*v.iter().map(|x|x.0*x.1).sum::<f64>()+0.5*weighted_median(&mut v)} } }).collect();
        out.push(Issue{origin:o,point,quantiles:None});
    }
    out
}
fn rel(cs:&[Cached],f:&dyn Fn(&Cached)->Vec<Issue>,cp:bool,detail:bool)->[f64;4]{
    let mut r=[vec![],vec![],vec![],vec![]];
    for c in cs { if c.split.name=="dlrm_gpu"||c.split.name=="pre_dlrm_gpu" {continue;}
        let d=c.names.iter().position(|n|n=="day").unwrap(); let mut i=f(c); let mut b=c.issues(d);
        if cp { i= if i[0].quantiles.is_some(){i}else{conformal(&c.split,&i)}; b=conformal(&c.split,&b); }
        for (k,st) in [(0,c.split.horizon),(1,hour(&c.split))] { let a=score(&c.split,&i,st); let z=score(&c.split,&b,st); r[k].push(a.mase/z.mase); if cp { r[k+2].push(a.crps/z.crps);} }
    }
    if detail { for k in 0..if cp {4} else {2} { println!("    {:?}", r[k].iter().map(|x| (x*1000.0).round()/1000.0).collect::<Vec<_>>()); } }
    let g=|v:&Vec<f64>| if v.is_empty(){0.0}else{geo(v)}; [g(&r[0]),g(&r[1]),g(&r[2]),g(&r[3])]
}
fn mixes(cs:&[Cached]){
    let names=cs[0].names.clone();
    let sets:Vec<(&str,Vec<&str>)>=vec![
        ("all",names.iter().map(|s|s.as_str()).collect()),
        ("core",vec!["week","level_day","level_week","hw","log_hw","ridge","log_ridge","fourier","log_fourier","profile","nlinear","wprofile"]),
        ("lean",vec!["week","level_week","log_hw","log_ridge","log_fourier","profile","wprofile"]),
        ("lean2",vec!["level_day","level_week","hw","log_hw","ridge","log_ridge","log_fourier","profile","wprofile"]),
    ];
    for (n,set) in &sets { let use_:Vec<usize>=set.iter().filter_map(|x| names.iter().position(|y|y==x)).collect();
        for kind in [0,1,2] { for power in [0.0,2.0,4.0,8.0] { for half in [1.0,3.0] { if power==0.0&&half>1.0 {continue;}
            let k=Mix{kind,power,half_days:half,prior:0.0}; let r=rel(cs,&|c|mix(c,&use_,k),false,false);
            println!("{n:6} kind {kind} power {power} half {half}: {:.3} {:.3}",r[0],r[1]); } } } }
}
#[derive(Clone,Copy,Debug)]
struct Cal { half: f64, kv: f64, vh: f64, kf: f64, eta: f64 }
fn wquant(v:&[(f64,f64)],q:f64)->f64{ // sorted by value, weights; midpoint interpolation
    let tot:f64=v.iter().map(|x|x.1).sum(); let target=q*tot; let mut acc=0.0;
    for i in 0..v.len(){ let mid=acc+0.5*v[i].1; if mid>=target { if i==0 {return v[0].0;} let pm=acc-0.5*v[i-1].1; return v[i-1].0+(v[i].0-v[i-1].0)*((target-pm)/(mid-pm)).clamp(0.0,1.0);} acc+=v[i].1; }
    v[v.len()-1].0 }
fn cal(c:&Cached, is:&[Issue], k:Cal)->Vec<Issue>{
    let s=&c.split; let h=s.horizon; let bl=blocks(h); let nb=bl[h-1]+1; let lv=levels(); let m=s.season as f64;
    let mut pools:Vec<Vec<(f64,f64,usize)>>=vec![vec![];nb]; // normalised residual, time
    let mut base=vec![(0.0,0.0);nb]; // long-run mean |r/f^k|
    let mut vol=(1.0,1.0); let vd=0.5f64.powf(1.0/(k.vh*m/24.0)); let bd=0.5f64.powf(1.0/(7.0*m));
    let mut theta=vec![vec![0.0;lv.len()];nb];
    let mut given:Vec<(f64,Vec<Vec<f64>>,Vec<f64>)>=vec![]; // vol at origin, normalised quantiles per block per level, fscale
    let mean:f64={let v:Vec<f64>=(0..is[0].origin).filter(|&t|s.observed[t]).map(|t|s.y[t]).collect(); v.iter().sum::<f64>()/v.len() as f64};
    let fs=|f:f64| ((f.max(0.0)+0.1*mean)/(1.1*mean)).powf(k.kf);
    let mut out=vec![]; let mut done=is[0].origin;
    for (oi,i) in is.iter().enumerate(){ let o=i.origin;
        for t in done..o { if !s.observed[t]{continue;}
            let (mut vs,mut vn)=(0.0,0.0); let mut seen=vec![0usize;nb];
 if t%s.season==0 { for p in &mut pools { p.retain(|x| t<x.2+(k.half*4.0*m) as usize); } }            for (pi,p) in is[..oi].iter().enumerate().rev() { if p.origin+h<=t {break;} if t<p.origin {continue;} let st=t-p.origin; let b=bl[st];
                let e=(s.y[t]-p.point[st])/fs(p.point[st]); let g=&given[pi];
                let r=e/g.0; seen[b]+=1; if (seen[b]-1+t)%3==0 || b<5 { let at=pools[b].partition_point(|x|x.0<r); pools[b].insert(at,(r,2f64.powf((t-is[0].origin) as f64/(k.half*m)),t)); }
                if base[b].1>0.0 { let bb=base[b].0/base[b].1; if bb>0.0 { vs+=(e.abs()/bb).min(10.0); vn+=1.0; } }
                base[b].0+=e.abs(); base[b].1+=1.0;
                if k.eta>0.0 && !g.1.is_empty() { let unit=if base[b].1>0.0 {base[b].0/base[b].1} else {0.0};
                    for l in 0..lv.len() { let err=if r<=g.1[b][l] {1.0} else {0.0}; theta[b][l]+=k.eta*unit*(lv[l]-err); } }
            }
            for x in &mut base { x.0*=bd; x.1*=bd; }
            if vn>0.0 { vol.0=vol.0*vd+(1.0-vd)*vs/vn; vol.1=vol.1*vd+(1.0-vd); }
        }
        done=o;
        let v=(vol.0/vol.1 as f64).max(0.05).powf(k.kv);
        let mut norm=vec![];
        for b in 0..nb { let mut src=b; while src>0 && pools[src].len()<20 { src-=1; } if pools[src].is_empty(){ norm.push(vec![0.0;lv.len()]); continue; }
            let p=&pools[src]; let tot:f64=p.iter().map(|x|x.1).sum(); let mut acc=0.0; let mut i=0; let mut v=vec![];
            for l in 0..lv.len(){ let target=lv[l]*tot; while i<p.len()-1 && acc+p[i].1*0.5<target { acc+=p[i].1; i+=1; }
                let mid=acc+0.5*p[i].1; let x=if i==0 {p[0].0} else { let pm=acc-0.5*p[i-1].1; p[i-1].0+(p[i].0-p[i-1].0)*((target-pm)/(mid-pm)).clamp(0.0,1.0)}; v.push(x+theta[b][l]); }
            norm.push(v); }
        let q=(0..h).map(|st|{ let f=i.point[st]; let mut v2:Vec<f64>=norm[bl[st]].iter().map(|n| (f+n*v*fs(f)).max(0.0)).collect(); v2.sort_by(f64::total_cmp); v2}).collect();
        given.push((v,norm,vec![])); out.push(Issue{quantiles:Some(q),..i.clone()});
    }
    out
}
fn cover(cs:&[Cached],f:&dyn Fn(&Cached)->Vec<Issue>)->(Vec<f64>,f64,f64){ let mut v=vec![]; let mut pl=vec![]; let mut crps=vec![];
    for c in cs { let sc=score(&c.split,&f(c),c.split.horizon); v.push(sc.levels[2].2); pl.push(sc.levels[2].1); crps.push(sc.crps);} (v,geo(&pl),geo(&crps)) }
fn cals(cs:&[Cached],mixed:&[Vec<Issue>]){
    let idx=|c:&Cached| cs.iter().position(|d| d.split.name==c.split.name).unwrap();
    let base=cover(cs,&|c|conformal(&c.split,&mixed[idx(c)]));
    println!("protocol: pinball.9 {:.4} crps {:.4} cov {:?}",base.1,base.2,base.0.iter().map(|x|(x*100.0).round()).collect::<Vec<_>>());
    for half in [3.0] { for kf in [0.0,0.5] { for (kv,vh) in [(0.0,6.0),(0.5,6.0),(0.5,24.0),(1.0,12.0)] { for eta in [0.0,0.01,0.05] {
        let k=Cal{half,kv,vh,kf,eta}; let r=cover(cs,&|c|cal(c,&mixed[idx(c)],k));
        let bad=r.0.iter().filter(|x|**x<0.85||**x>0.95).count(); let dist:f64=r.0.iter().map(|x|(0.85-x).max(x-0.95).max(0.0)).sum();
        println!("{k:?}: pin {:.4} crps {:.4} bad {bad} dist {dist:.3} {:?}",r.1/base.1,r.2/base.2,r.0.iter().map(|x|(x*100.0).round()).collect::<Vec<_>>());
    }}}}
}
fn main() {
    let mode=std::env::args().nth(1).unwrap_or_default();
    let only=std::env::args().nth(2);
    if mode=="protocol" {
        for n in SERIES { let s=Split::load(n); let c=roll(&s,s.cal_start,&|_| vec![("day",Box::new(Week{p:s.season}))],None);
            let i=conformal(&s,&c.issues(0)); for (b,k) in [("1h",1),("6h",6),("24h",24)] { let sc=score(&s,&i,k*s.season/24); let p=published(n,"snaive_day",b).unwrap();
            println!("{n} {b} origins {} mae {:.4} vs {:.4} crps {:.5} vs {:.5} cov9 {:.3} vs {:.3}",sc.origins,sc.mae,p[0],sc.crps,p[14],sc.levels[2].2,p[10]); } }
        return;
    }
    let splits:Vec<Split> = if mode=="dev" {dev()} else {SERIES.iter().map(|n|Split::load(n)).collect()};
    let cs:Vec<Cached>=splits.iter().map(|s| roll(s,(s.cal_start.saturating_sub(7*s.season)).max(3*s.season).min(s.cal_start),&experts,None)).collect();
    table(&cs);
    if mode=="dev" && only.is_some() { mixes(&cs); }
    let all:Vec<usize>=(0..cs[0].names.len()).collect();
    let k=Mix{kind:1,power:2.0,half_days:1.0,prior:0.0};
    let mixed:Vec<Vec<Issue>>=cs.iter().map(|c|mix(c,&all,k)).collect();
    if mode=="dev" { cals(&cs,&mixed); }
    println!("chosen with protocol cp: {:?}", rel(&cs,&|c|mix(c,&all,k),true,true));
}
